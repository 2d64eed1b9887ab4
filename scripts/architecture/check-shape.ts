import type { Finding } from "./finding.ts";
import type { SourceFile } from "./source-file.ts";

/** A file above this many lines gets a warning. */
export const FILE_WARNING_LINES = 300;
/** A file above this many lines stops the run. */
export const FILE_STOP_LINES = 500;
/** A function whose body is above this many lines stops the run. */
export const FUNCTION_STOP_LINES = 70;

const EMPTY_NAMES = /^(?:utils?|helpers?|common|misc|manager)$/;

/** Check the size of files and functions. Pure. */
export function checkSizes(files: readonly SourceFile[]): Finding[] {
  const findings: Finding[] = [];
  for (const { path, lineCount, functions } of files) {
    if (lineCount > FILE_WARNING_LINES) {
      const isWarning = lineCount <= FILE_STOP_LINES;
      const what = `${lineCount} lines, ${isWarning ? `more than ${FILE_WARNING_LINES}: is there more than one job inside?` : `${FILE_STOP_LINES} is the end`}`;
      findings.push({ rule: "file-size", path, line: 0, subject: "lines", what, isWarning });
    }
    for (const { name, line, lineCount: bodyLines } of functions) {
      if (bodyLines <= FUNCTION_STOP_LINES) continue;
      findings.push({
        rule: "function-size",
        path,
        line,
        subject: name,
        what: `${name} has ${bodyLines} lines, ${FUNCTION_STOP_LINES} is the end`,
      });
    }
  }
  return findings;
}

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

/** Check that docstrings explain parameters that are there. Pure. */
export function checkParams(files: readonly SourceFile[]): Finding[] {
  return files.flatMap(({ path, staleParams }) =>
    staleParams.map(({ what, line }) => ({
      rule: "docs",
      path,
      line,
      subject: what,
      what: `@param ${what}: the function below has no such parameter`,
    })),
  );
}

/** Share of exported declarations that have a docstring, 0–1; 1 when there are none. */
export function documentedShare(files: readonly SourceFile[]): number {
  const all = files.filter((file) => !file.isTest).flatMap((file) => file.declarations);
  return all.length === 0 ? 1 : all.filter((declaration) => declaration.isDocumented).length / all.length;
}

/** Check for swallowed errors, switched-off tests and types, and notes of unfinished work. Pure. */
export function checkShortcuts(files: readonly SourceFile[]): Finding[] {
  return files.flatMap(({ path, shortcuts }) =>
    shortcuts.map(({ what, line }) => ({ rule: "shortcuts", path, line, subject: what, what })),
  );
}

/** Check that files are kebab-case and named by what they hold. Pure. */
export function checkNames(files: readonly SourceFile[]): Finding[] {
  return files.flatMap(({ path }) => {
    const name = (path.split("/").at(-1) ?? "").replace(/(?:\.(?:test|d|config))?\.ts$/, "");
    const problem = EMPTY_NAMES.test(name)
      ? "says nothing: name the noun it defines"
      : /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)
        ? undefined
        : "is not kebab-case";
    return problem === undefined ? [] : [{ rule: "names", path, line: 0, subject: name, what: `the file name ${problem}` }];
  });
}
