import { posix } from "node:path";
import type { Finding } from "./finding.ts";
import type { Import, SourceFile } from "./source-file.ts";

const CORE = "packages/core/src/";
const PURE_ENTRY_POINTS: ReadonlySet<string> = new Set(["@turnout/core", "@turnout/core/backend"]);
/** What touches the process in core: the system's clock, and the one that tests stand still. */
const CORE_ACTING = /^packages\/core\/src\/(?:process\/|testing\/clock\.ts$)/;
/** In a backend these decide. `render` may be several files or a folder. */
const DECIDING = /^packages\/backend-[^/]+\/src\/(?:(?:objects|names|plan|explain)\.ts$|render(?:[-/].*)?(?:\.ts)?$)/;
/** What deciding files share with other backends: no effects, and entry points of its own. */
const SHARED = /^packages\/host\/src\/(?:(?:iptables|ipset)\/text|iptables\/rules|ipvs\/model|nft-statement|rules)\//;
const SHARED_ENTRY_POINT = /^@turnout\/host\/(?:(?:iptables|ipset)\/text|ipvs\/model|nft-statement)$/;
/** And these hold its effects. */
const ACTING = /^packages\/backend-[^/]+\/src\/(?:probe|observe|apply)\.ts$/;

/** File a relative import means; the type-only ones cost nothing at run time and aren't followed. */
function targetOf(file: SourceFile, one: Import): string | undefined {
  return one.specifier.startsWith(".") && !one.isTypeOnly ? posix.join(posix.dirname(file.path), one.specifier) : undefined;
}

/**
 * Find the files that have to be pure, each with the reason: all of core, the deciding files of a backend, and
 * whatever those import of their own package. Tests never are.
 */
export function pureFiles(files: readonly SourceFile[]): ReadonlyMap<string, string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const pure = new Map<string, string>();
  for (const { path, isTest } of files) {
    if (isTest) continue;
    if (CORE_ACTING.test(path)) continue;
    if (path.startsWith(CORE)) pure.set(path, "core is pure");
    else if (SHARED.test(path)) pure.set(path, "what decides imports this folder");
    else if (DECIDING.test(path)) pure.set(path, "this file decides");
  }
  // A Map hands out entries that are added while it is walked, so this reaches everything.
  for (const [path] of pure) {
    const file = byPath.get(path);
    for (const one of file?.imports ?? []) {
      const target = file === undefined ? undefined : targetOf(file, one);
      if (target !== undefined && byPath.has(target) && !pure.has(target) && !CORE_ACTING.test(target))
        pure.set(target, `${posix.basename(path)} decides and imports this file`);
    }
  }
  return pure;
}

function isHash(one: Import): boolean {
  return one.specifier === "node:crypto" && one.names.length > 0 && one.names.every((name) => name === "hash");
}

function isPureImport(file: SourceFile, one: Import): boolean {
  if (isHash(one)) return true;
  // Types of another package's entry have no effects; neither does that entry's module, which is not loaded.
  if (one.isTypeOnly && one.specifier.startsWith("@turnout/") && !file.path.startsWith(CORE)) return true;
  const target = targetOf(file, one);
  if (target !== undefined) return !ACTING.test(target) && (!CORE_ACTING.test(target) || file.path.startsWith(`${CORE}testing/`));
  if (one.specifier.startsWith(".")) return true;
  return (PURE_ENTRY_POINTS.has(one.specifier) || SHARED_ENTRY_POINT.test(one.specifier)) && !file.path.startsWith(CORE);
}

/** Check that what decides reaches no clock, no chance and no world. Pure. */
export function checkPurity(files: readonly SourceFile[]): Finding[] {
  const pure = pureFiles(files);
  return files.flatMap((file) => {
    const reason = pure.get(file.path);
    if (reason === undefined) return [];
    const finding = (line: number, subject: string, what: string): Finding => ({
      rule: "purity",
      path: file.path,
      line,
      subject,
      what: `${reason}: ${what}`,
    });
    return [
      ...file.imports
        .filter((one) => !isPureImport(file, one))
        .map((one) => finding(one.line, one.specifier, `it may not import ${one.specifier}`)),
      ...file.effects.map(({ what, line }) => finding(line, what, `have ${what} passed in`)),
    ];
  });
}
