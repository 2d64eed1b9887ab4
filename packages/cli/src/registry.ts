import { ALL_CAPABILITIES, ProxyError, type BackendModule, type Variants, type World } from "@turnout/core";
import type { CreateFakeHost } from "@turnout/conformance";
import { backendOf } from "@turnout/client/daemon";
import { importForeign, isPackageDirectory, isPath, type ForeignModule } from "./foreign-module.ts";

/** A backend that comes with turnout. */
export interface KnownBackend {
  readonly name: string;
  /** One line for `--help`. */
  readonly summary: string;
  readonly load: () => Promise<object>;
  /** Its door `./testing`. */
  readonly loadTesting: () => Promise<object>;
  /** It has to be asked for: `auto` doesn't take it, because what it does ends with the process. */
  readonly isNeverAuto?: true;
}

/** Every backend that comes with turnout, in the order `auto` tries them (but for those it never takes). This file is the only one that names them. */
export const KNOWN_BACKENDS: readonly KnownBackend[] = [
  {
    name: "nft",
    summary: "nftables, Linux 5.13 or newer",
    load: () => import("@turnout/backend-nft"),
    loadTesting: () => import("@turnout/backend-nft/testing"),
  },
  {
    name: "iptables",
    summary: "iptables 1.8, legacy or nf_tables, with kube-proxy's own chains",
    load: () => import("@turnout/backend-iptables"),
    loadTesting: () => import("@turnout/backend-iptables/testing"),
  },
  {
    name: "userspace",
    summary: "a TCP and UDP proxy in the process: no root needed; has to be asked for",
    load: () => import("@turnout/backend-userspace"),
    loadTesting: () => import("@turnout/backend-userspace/testing"),
    isNeverAuto: true,
  },
];

/** Tell whether a module comes with turnout, and is not just named like one that does. */
export async function isKnownBackend(module: BackendModule): Promise<boolean> {
  const known = KNOWN_BACKENDS.find(({ name }) => name === module.name);
  return known !== undefined && ((await known.load()) as { readonly default?: unknown }).default === module;
}

/** The backends that come with turnout, but for the one in use: their rules may still be in force. */
export async function otherBackends(inUse: string): Promise<readonly BackendModule[]> {
  const others = KNOWN_BACKENDS.filter(({ name }) => name !== inUse);
  return await Promise.all(others.map(({ name }) => loadBackend(name, "")));
}

/** Dataplanes that somebody may ask for by name, and would get a foreign npm package instead. */
const NOT_YET: ReadonlySet<string> = new Set(["ipvs", "ebpf", "winkernel"]);

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
  for (const { name, isNeverAuto } of KNOWN_BACKENDS) {
    if (isNeverAuto === true) continue;
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
  const object = `backend ${spec}`;
  const hint = `use ${knownNames()}, auto, an installed package, or a path starting with ./ or /`;
  const loaded = known === undefined ? await importBackend({ spec, object, hint }, workingDirectory) : await known.load();
  const module = (loaded as { readonly default?: unknown }).default;
  if (!isBackendModule(module))
    throw new ProxyError("invalid_object", "it does not export a backend module (contract 1) as default", { object });
  const missing = missingDeclarations(module);
  if (missing.length === 0) return module;
  throw new ProxyError("invalid_object", `it does not declare ${missing.join(", ")}`, {
    object,
    hint: "see BackendModule in @turnout/core",
  });
}

/**
 * Load the host in memory that a backend ships for the conformance kit: `createFakeHost` of its door `./testing`, or of the module itself
 * when the backend is a file.
 * @param host a package or path that has it instead; undefined: as above
 * @throws {ProxyError} `invalid_object` when there is none.
 */
export async function loadFakeHost(spec: string, host: string | undefined, workingDirectory: string): Promise<CreateFakeHost> {
  const known = KNOWN_BACKENDS.find(({ name }) => name === backendOf(spec));
  const isFile = isPath(spec) && !isPackageDirectory(spec, workingDirectory);
  const where = host ?? (isFile ? spec : `${spec.replace(/\/+$/, "")}/testing`);
  const object = `fake host ${where}`;
  const isOurs = host === undefined && known !== undefined;
  const hint =
    "a backend exports createFakeHost from its door ./testing; elsewhere, pass --host with a package, or a path starting with ./ or /";
  const loaded = isOurs ? await known.loadTesting() : await importForeign({ spec: where, object, hint }, workingDirectory);
  const { createFakeHost } = loaded as { readonly createFakeHost?: unknown };
  if (typeof createFakeHost === "function") return createFakeHost as CreateFakeHost;
  throw new ProxyError("invalid_object", "it does not export createFakeHost", { object, hint: "pass --host with the module that does" });
}

async function importBackend(wanted: ForeignModule, workingDirectory: string): Promise<object> {
  if (NOT_YET.has(backendOf(wanted.spec)))
    throw new ProxyError("invalid_object", "this version has no such backend", { object: wanted.object, hint: `use ${knownNames()}` });
  return await importForeign(wanted, workingDirectory);
}

/** Typed as it is so that none can be left out. */
const VARIANTS: Readonly<Record<keyof Variants, true>> = {
  undefinedClusterIPPort: true,
  unallocatedClusterIP: true,
  nodePortRejectScope: true,
  rejectFromHost: true,
  blockedWithoutEndpoints: true,
  affinityScope: true,
  nodePortsOnLoopback: true,
};

/** What a module in plain JavaScript may have forgotten to say of itself; what isn't said would be taken for a choice. */
function missingDeclarations({ capabilities, variants }: Partial<BackendModule>): readonly string[] {
  const absent = (group: string, names: object, said: object = {}): readonly string[] =>
    Object.keys(names).flatMap((name) => (Object.hasOwn(said, name) ? [] : [`${group}.${name}`]));
  return [...absent("capabilities", ALL_CAPABILITIES, capabilities), ...absent("variants", VARIANTS, variants)];
}

const FUNCTIONS = ["parseOptions", "probe", "open"] as const;

function isBackendModule(value: unknown): value is BackendModule {
  if (typeof value !== "object" || value === null) return false;
  const candidate = value as Readonly<Record<string, unknown>>;
  return (
    candidate["contract"] === 1 && typeof candidate["name"] === "string" && FUNCTIONS.every((name) => typeof candidate[name] === "function")
  );
}
