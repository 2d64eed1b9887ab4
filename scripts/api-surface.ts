import { posix } from "node:path";
import type { SourceFile } from "./architecture/source-file.ts";

/** A door of a package: what `import "@turnout/core/testing"` opens. */
export interface EntryPoint {
  /** As it is imported, e.g. `@turnout/core/testing`. */
  readonly specifier: string;
  /** Source file behind it, relative to the repository. */
  readonly path: string;
}

/** Find the doors a package.json's `exports` opens to the sources; other entries (such as `./package.json`) are no doors. */
export function entryPointsOf(dir: string, name: string, exports: Readonly<Record<string, unknown>>): EntryPoint[] {
  return Object.entries(exports).flatMap(([subpath, target]): EntryPoint[] => {
    if (typeof target !== "object" || target === null || !("@turnout/source" in target)) return [];
    const source = target["@turnout/source"];
    return typeof source === "string" ? [{ specifier: posix.join(name, subpath), path: posix.join(dir, source) }] : [];
  });
}

type Files = ReadonlyMap<string, SourceFile>;

/** Names behind one file with their kinds; `visiting` breaks circles of `export *`. */
function namesIn(path: string, files: Files, visiting: ReadonlySet<string>): ReadonlyMap<string, string> {
  const file = files.get(path);
  if (file === undefined) throw new Error(`${path} is exported and doesn't exist`);
  const names = new Map<string, string>();
  if (visiting.has(path)) return names;
  for (const { specifier, imported, exported } of file.reexports) {
    // What is generated is described by its proto file, and isn't among the sources.
    if (specifier.includes("/gen/")) {
      names.set(exported, "generated");
      continue;
    }
    if (!specifier.startsWith(".")) {
      names.set(exported === "*" ? `* from ${specifier}` : exported, exported === "*" ? "everything" : `from ${specifier}`);
      continue;
    }
    const behind = namesIn(posix.join(posix.dirname(path), specifier), files, new Set([...visiting, path]));
    if (exported !== "*") names.set(exported, imported === "*" ? "namespace" : (behind.get(imported) ?? "unknown"));
    // `export *` leaves the default out.
    else for (const [name, kind] of behind) if (name !== "default") names.set(name, kind);
  }
  for (const { name, kind } of file.declarations) names.set(name, kind);
  return names;
}

/**
 * Write down what a package exports: each door, and below it its names in order, with their kinds.
 * @throws {Error} when a door or a re-export leads to no file.
 */
export function surfaceText(entryPoints: readonly EntryPoint[], files: Files): string {
  const blocks = entryPoints
    .toSorted((a, b) => (a.specifier < b.specifier ? -1 : 1))
    .map(({ specifier, path }) => {
      const names = [...namesIn(path, files, new Set())].toSorted(([a], [b]) => (a < b ? -1 : 1));
      return [specifier, ...names.map(([name, kind]) => `  ${kind} ${name}`)].join("\n");
    });
  return `${blocks.join("\n\n")}\n`;
}

/** Lines only one side has, as `- gone` and `+ new`, in order. Empty when the texts are equal. */
export function surfaceDifference(before: string, after: string): string[] {
  const linesOf = (text: string): readonly string[] =>
    text.split("\n\n").flatMap((block) => {
      const [entryPoint = "", ...names] = block.trimEnd().split("\n");
      return entryPoint === "" ? [] : [entryPoint, ...names.map((name) => `${entryPoint}:${name.slice(1)}`)];
    });
  const [old, now] = [linesOf(before), linesOf(after)];
  return [
    ...old.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
    ...now.filter((line) => !old.includes(line)).map((line) => `+ ${line}`),
  ];
}
