import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ProxyError } from "@turnout/core";

/** What somebody asked for by package or path. */
export interface ExternalModule {
  /** As it was typed. */
  readonly spec: string;
  /** What it is for, in an error's words, e.g. `backend ./mine.js`. */
  readonly object: string;
  /** What to try when nothing is there. */
  readonly hint: string;
}

/** Tell a path from the name of a package. */
export function isPath(spec: string): boolean {
  return /^(\.{0,2}\/|\.{1,2}$)/.test(spec);
}

/** Whether a path is a directory with a package in it, which has doors as an installed one has. */
export function isPackageDirectory(spec: string, workingDirectory: string): boolean {
  return isPath(spec) && existsSync(join(resolve(workingDirectory, spec), "package.json"));
}

/**
 * Import a package or a path, as seen from a directory. Where a path is a package's directory, or that and a door, its package.json decides.
 * @throws {ProxyError} `invalid_object` when it isn't there or can't be loaded.
 */
export async function importExternal({ spec, object, hint }: ExternalModule, workingDirectory: string): Promise<object> {
  try {
    const path = isPath(spec) ? pathFile(resolve(workingDirectory, spec)) : packageFile(spec, workingDirectory);
    return (await import(pathToFileURL(path).href)) as object;
  } catch (error) {
    throw new ProxyError("invalid_object", `it can't be loaded (${loadProblem(error)})`, {
      object,
      hint: isNotThere(error) ? hint : "-v shows where",
      cause: error,
    });
  }
}

/** The file a path means: itself, or what is behind a door of the package there. @throws {ProxyError} for a directory without such a door. */
function pathFile(path: string): string {
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  if (isDirectory === false) return path;
  const [home, entryPoint] = existsSync(join(path, "package.json")) ? [path, "."] : [dirname(path), `./${basename(path)}`];
  const file = entryPointOf(home, entryPoint);
  if (file !== undefined) return file;
  if (isDirectory !== true) return path;
  throw new ProxyError("invalid_object", "it is a directory, and no package.json says which file is meant", { object: path });
}

function entryPointOf(home: string, entryPoint: string): string | undefined {
  if (!existsSync(join(home, "package.json"))) return undefined;
  const { exports, main } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { exports?: unknown; main?: unknown };
  const file = importEntryPoint(exports ?? main, entryPoint);
  return file === undefined ? undefined : join(home, file);
}

/** The file behind a door of a package; `require.resolve` alone doesn't see doors that are only for `import`. */
function packageFile(spec: string, workingDirectory: string): string {
  const require = createRequire(`${workingDirectory}/`);
  try {
    return require.resolve(spec);
  } catch (error) {
    const name = spec.split("/", spec.startsWith("@") ? 2 : 1).join("/");
    const home = (require.resolve.paths(spec) ?? [])
      .map((folder) => join(folder, name))
      .find((folder) => existsSync(join(folder, "package.json")));
    if (home === undefined) throw error;
    const file = entryPointOf(home, `.${spec.slice(name.length)}`);
    if (file === undefined) throw error;
    return file;
  }
}

const CONDITIONS: ReadonlySet<string> = new Set(["node", "import", "module-sync", "default"]);

/** Find a door among a package.json's `exports` as `import` would; patterns with `*` are not looked into. Pure. */
export function importEntryPoint(exports: unknown, entryPoint: string): string | undefined {
  if (isRecord(exports) && Object.keys(exports).some((key) => key.startsWith("."))) return importTarget(exports[entryPoint]);
  return entryPoint === "." ? importTarget(exports) : undefined;
}

function importTarget(target: unknown): string | undefined {
  if (typeof target === "string") return target;
  if (!isRecord(target)) return undefined;
  for (const [condition, inner] of Object.entries(target)) {
    const found = CONDITIONS.has(condition) ? importTarget(inner) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Nothing is there by that name or path; anything else is a fault inside the module. */
function isNotThere(error: unknown): boolean {
  if (ProxyError.is(error, "invalid_object")) return true;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /MODULE_NOT_FOUND|PATH_NOT_EXPORTED/.test(code);
}

/** Why a module can't be loaded, in one line; who tried is of no use to anybody. */
function loadProblem(error: unknown): string {
  if (ProxyError.is(error, "invalid_object")) return error.what;
  const text = error instanceof Error ? error.message : String(error);
  return (text.split("\n")[0] ?? "").replace(/ (resolving ES modules )?imported from .*$/, "");
}
