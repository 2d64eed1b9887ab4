import { posix } from "node:path";
import type { Finding } from "./finding.ts";
import type { SourceFile } from "./source-file.ts";

/** Check that every exported declaration has a docstring; tests export nothing worth one. Pure. */
export function checkDocs(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => !file.isTest)
    .flatMap(({ path, declarations }) =>
      declarations
        .filter((declaration) => !declaration.isDocumented)
        .map(({ name, kind, line }) => ({ rule: "docs", path, line, subject: name, what: `exported ${kind} ${name} has no docstring` })),
    );
}

/** Check for swallowed errors. Pure. */
export function checkSwallowed(files: readonly SourceFile[]): Finding[] {
  const what = "a .catch() that does nothing swallows the error";
  return files.flatMap(({ path, emptyCatches }) => emptyCatches.map((line) => ({ rule: "swallowed", path, line, subject: what, what })));
}

/** A folder with more source files says too little by its list of names. */
const FOLDER_FILES_MAX = 20;

/** Folders with more, each with the issue or the reason. The list may only become shorter. */
const LARGE_FOLDERS: ReadonlyMap<string, number> = new Map([
  ["bench", 37],
  ["e2e", 29],
  ["e2e/cluster", 21],
  ["scripts/images", 22],
]);

/** Check that no folder has too many source files; tests don't count. Pure. */
export function checkFolders(files: readonly Pick<SourceFile, "path" | "isTest">[]): Finding[] {
  const byFolder = Map.groupBy(
    files.filter(({ isTest }) => !isTest),
    ({ path }) => posix.dirname(path),
  );
  return [...byFolder].flatMap(([path, { length }]) => {
    const most = LARGE_FOLDERS.get(path) ?? FOLDER_FILES_MAX;
    return length <= most
      ? []
      : [{ rule: "folders", path, line: 0, subject: path, what: `${length} source files, more than ${most}: name its parts` }];
  });
}
