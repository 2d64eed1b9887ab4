import { posix } from "node:path";
import type { Finding } from "./finding.ts";
import type { Import, SourceFile } from "./source-file.ts";

const CORE = "packages/core/src/";
/** In a backend these decide; only probe, observe and apply touch anything. `render` may be several files or a folder. */
const PURE_IN_BACKEND = /^packages\/backend-[^/]+\/src\/(?:(?:objects|names|plan|explain)\.ts$|render(?:[-/].*)?(?:\.ts)?$)/;

/** Tell whether the file has to be pure: all of core, and the deciding files of a backend; tests never. */
export function isPure(file: SourceFile): boolean {
  return !file.isTest && (file.path.startsWith(CORE) || PURE_IN_BACKEND.test(file.path));
}

function isHash(one: Import): boolean {
  return one.specifier === "node:crypto" && one.names.length > 0 && one.names.every((name) => name === "createHash");
}

function problemOf(file: SourceFile, one: Import): string | undefined {
  if (isHash(one)) return undefined;
  if (file.path.startsWith(CORE)) {
    return one.specifier.startsWith(".")
      ? undefined
      : `core is pure: it imports nothing but createHash from node:crypto, not ${one.specifier}`;
  }
  if (one.specifier === "@turnout/core") return undefined;
  const isPurePath = one.specifier.startsWith(".") && PURE_IN_BACKEND.test(posix.join(posix.dirname(file.path), one.specifier));
  // A type costs nothing at run time, so options and the like may be named.
  const isOwnType = one.specifier.startsWith(".") && one.isTypeOnly;
  if (isPurePath || isOwnType) return undefined;
  return `this file decides, so it imports core and other deciding files (objects, render, names, plan, explain) only, not ${one.specifier}`;
}

/** Check that what decides reaches no clock, no chance and no world. Pure. */
export function checkPurity(files: readonly SourceFile[]): Finding[] {
  return files.filter(isPure).flatMap((file) => {
    const findings: Finding[] = [];
    for (const one of file.imports) {
      const what = problemOf(file, one);
      if (what !== undefined) findings.push({ rule: "purity", path: file.path, line: one.line, subject: one.specifier, what });
    }
    for (const { what, line } of file.effects) {
      findings.push({ rule: "purity", path: file.path, line, subject: what, what: `${what} in a pure file: have it passed in` });
    }
    return findings;
  });
}
