import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ProxyError, type BackendModule, type World } from "@turnout/core";
import type { CreateFakeHost } from "@turnout/core/testing";
import { backendOf } from "@turnout/client";

/** A backend that comes with turnout. */
export interface KnownBackend {
  readonly name: string;
  /** One line for `--help`. */
  readonly summary: string;
  readonly load: () => Promise<object>;
  /** Its door `./testing`. */
  readonly loadTesting: () => Promise<object>;
}

/** Every backend that comes with turnout, in the order `auto` tries them. This file is the only one that names them. */
export const KNOWN_BACKENDS: readonly KnownBackend[] = [
  {
    name: "nft",
    summary: "nftables, Linux 5.13 or newer",
    load: () => import("@turnout/backend-nft"),
    loadTesting: () => import("@turnout/backend-nft/testing"),
  },
];

/** Dataplanes that somebody may ask for by name, and would get a foreign npm package instead. */
const NOT_YET: ReadonlySet<string> = new Set(["iptables", "ipvs", "ebpf", "userspace", "winkernel"]);

/** What choosing a backend looks at. */
export interface BackendChoice {
  /** A name, `auto`, a package, or a path. */
  readonly spec: string;
  /** kube-proxy's mode word from the configuration; "" when none. */
  readonly mode: string;
  readonly world: World;
  readonly workingDirectory: string;
  readonly signal: AbortSignal;
  /** Stop at a host that can't run any; false for commands that touch nothing. */
  readonly needsHost: boolean;
}

/**
 * Find the backend somebody asked for.
 *
 * Edges: `auto` takes the one the configuration's mode names, else the first that says the host can run it.
 * @throws {ProxyError} `invalid_object` for an unknown name or something that is no backend, or the host's first problem.
 */
export async function chooseBackend(choice: BackendChoice): Promise<BackendModule> {
  const { spec, mode, workingDirectory } = choice;
  if (spec !== "auto") return await loadBackend(spec, workingDirectory);
  if (mode === "") return await firstThatRuns(choice);
  const name = backendOf(mode);
  if (!KNOWN_BACKENDS.some((known) => known.name === name)) {
    throw new ProxyError("invalid_object", "no backend for this mode", {
      object: `mode ${mode}`,
      hint: `pass --backend ${knownNames()} to use another`,
    });
  }
  return await loadBackend(name, workingDirectory);
}

function knownNames(): string {
  return KNOWN_BACKENDS.map(({ name }) => name).join("|");
}

async function firstThatRuns({ workingDirectory, world, signal, needsHost }: BackendChoice): Promise<BackendModule> {
  let problem: ProxyError | undefined;
  for (const { name } of KNOWN_BACKENDS) {
    const module = await loadBackend(name, workingDirectory);
    if (!needsHost) return module;
    const report = await module.probe(module.parseOptions({}), world, signal);
    if (report.problems.length === 0) return module;
    problem ??= report.problems[0];
  }
  throw problem ?? new ProxyError("host_unsupported", "no backend can run on this host");
}

/**
 * Load a backend by name (ours or kube-proxy's word for it), package or path; its default export is the module.
 * @throws {ProxyError} `invalid_object` when there is none.
 */
export async function loadBackend(spec: string, workingDirectory: string): Promise<BackendModule> {
  const known = KNOWN_BACKENDS.find(({ name }) => name === backendOf(spec));
  const loaded = known === undefined ? await importForeign(`backend ${spec}`, spec, workingDirectory) : await known.load();
  const module = (loaded as { readonly default?: unknown }).default;
  if (isBackendModule(module)) return module;
  throw new ProxyError("invalid_object", "it does not export a backend module (contract 1) as default", { object: `backend ${spec}` });
}

/**
 * Load the host in memory that a backend ships for the conformance kit: `createFakeHost` of its door `./testing`, or of the module itself
 * when the backend is a path.
 * @param host a package or path that has it instead; undefined: as above
 * @throws {ProxyError} `invalid_object` when there is none.
 */
export async function loadFakeHost(spec: string, host: string | undefined, workingDirectory: string): Promise<CreateFakeHost> {
  const known = KNOWN_BACKENDS.find(({ name }) => name === backendOf(spec));
  const where = host ?? (isPath(spec) ? spec : `${spec}/testing`);
  const object = `fake host ${where}`;
  const isOurs = host === undefined && known !== undefined;
  const loaded = isOurs ? await known.loadTesting() : await importForeign(object, where, workingDirectory);
  const { createFakeHost } = loaded as { readonly createFakeHost?: unknown };
  if (typeof createFakeHost === "function") return createFakeHost as CreateFakeHost;
  throw new ProxyError("invalid_object", "it does not export createFakeHost", { object, hint: "pass --host with the module that does" });
}

function isPath(spec: string): boolean {
  return /^\.{0,2}\//.test(spec);
}

async function importForeign(object: string, spec: string, workingDirectory: string): Promise<object> {
  if (NOT_YET.has(backendOf(spec)))
    throw new ProxyError("invalid_object", "this version has no such backend", { object, hint: `use ${knownNames()}` });
  try {
    if (isPath(spec)) return (await import(pathToFileURL(resolve(workingDirectory, spec)).href)) as object;
    const path = createRequire(`${workingDirectory}/`).resolve(spec);
    return (await import(pathToFileURL(path).href)) as object;
  } catch (error) {
    const text = loadProblem(error);
    throw new ProxyError("invalid_object", `it can't be loaded (${text})`, {
      object,
      hint: isNotThere(error)
        ? `use ${object.startsWith("backend") ? `${knownNames()}, auto, ` : ""}an installed package, or a path starting with ./ or /`
        : "-v shows where",
      cause: error,
    });
  }
}

/** Nothing is there by that name or path; anything else is a fault inside the module. */
function isNotThere(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /MODULE_NOT_FOUND|PATH_NOT_EXPORTED/.test(code);
}

/** Why a module can't be loaded, in one line; who tried is of no use to anybody. */
function loadProblem(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split("\n")[0] ?? "").replace(/ (resolving ES modules )?imported from .*$/, "");
}

const FUNCTIONS = ["parseOptions", "probe", "open"] as const;

function isBackendModule(value: unknown): value is BackendModule {
  if (typeof value !== "object" || value === null) return false;
  const candidate = value as Readonly<Record<string, unknown>>;
  return (
    candidate["contract"] === 1 && typeof candidate["name"] === "string" && FUNCTIONS.every((name) => typeof candidate[name] === "function")
  );
}
