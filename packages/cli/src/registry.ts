import { parseModule, probeModule, ProxyError, withWorldOf, type BackendModule, type Plain, type World } from "@turnout/core";
import type { RulePlaces } from "@turnout/explain";
import type { OptionKinds, Rights } from "@turnout/core/backend";
import type { CreateFakeHost, Examine } from "@turnout/conformance";
import type { Environment } from "./environment.ts";
import { findRules, reasonsOf } from "./found-backend.ts";
import { importExternal, isPackageDirectory, isPath } from "./external-module.ts";

/** A backend that comes with turnout. */
export interface KnownBackend {
  readonly name: string;
  /** kube-proxy's mode word for it, where that is another; it may be asked for by this, too. */
  readonly proxyMode?: string;
  /** One line for `--help`. */
  readonly summary: string;
  readonly load: () => Promise<object>;
  /** Its door `./testing`. */
  readonly loadTesting: () => Promise<object>;
  /** It has to be asked for: `auto` doesn't take it, because what it does ends with the process, because it has no future upstream, or because all processes pass by it. */
  readonly isNeverAuto?: true;
  /** What it needs; elsewhere it can have left nothing. Default: anything but Windows. */
  readonly runsOn?: "windows" | "anything";
  /** Its rules are in kube-proxy's chains. */
  readonly hasKubeChains?: true;
  /** IPVS serves: packets for Services come in for this host itself. */
  readonly servesAtInput?: true;
  /** Its process answers: Services' addresses are on a device of this host, and it opens connections of its own to endpoints. */
  readonly answersItself?: true;
  /** Programs at devices tell conntrack what a packet becomes, before any hook of netfilter. */
  readonly translatesAtDevices?: true;
  /** Commands that show its rules on a node, for people who look around. */
  readonly looks?: readonly { readonly what: string; readonly command: string }[];
}

/** Every backend that comes with turnout, in the order `auto` tries them (but for those it never takes). This file is the only one that names them. */
export const KNOWN_BACKENDS: readonly KnownBackend[] = [
  {
    name: "nft",
    proxyMode: "nftables",
    summary: "nftables, Linux 5.13 or newer",
    load: () => import("@turnout/backend-nft"),
    loadTesting: () => import("@turnout/backend-nft/testing"),
    looks: [
      { what: "where each address goes", command: "nft list map ip turnout services" },
      { what: "all the rules of a node", command: "nft list table ip turnout" },
    ],
  },
  {
    name: "iptables",
    summary: "iptables 1.8, legacy or nf_tables, with kube-proxy's own chains",
    load: () => import("@turnout/backend-iptables"),
    loadTesting: () => import("@turnout/backend-iptables/testing"),
    hasKubeChains: true,
  },
  {
    name: "ipvs",
    summary: "the kernel's load balancer, with kube-proxy's sets and chains of its ipvs mode; has to be asked for",
    load: () => import("@turnout/backend-ipvs"),
    loadTesting: () => import("@turnout/backend-ipvs/testing"),
    hasKubeChains: true,
    servesAtInput: true,
    isNeverAuto: true,
    looks: [
      { what: "virtual servers and their endpoints", command: "ipvsadm -Ln" },
      { what: "addresses of Services", command: "ip address show dev kube-ipvs0" },
    ],
  },
  {
    name: "ebpf",
    summary: "eBPF at sockets and devices, Linux 6.1 or newer with BTF; has to be asked for",
    load: () => import("@turnout/backend-ebpf"),
    loadTesting: () => import("@turnout/backend-ebpf/testing"),
    translatesAtDevices: true,
    isNeverAuto: true,
    looks: [
      { what: "programs at devices", command: "bpftool net" },
      { what: "flows that come from elsewhere", command: "conntrack -L" },
    ],
  },
  {
    name: "userspace",
    summary: "a TCP and UDP proxy in the process: no root needed; has to be asked for",
    load: () => import("@turnout/backend-userspace"),
    loadTesting: () => import("@turnout/backend-userspace/testing"),
    answersItself: true,
    isNeverAuto: true,
    runsOn: "anything",
  },
  {
    name: "winkernel",
    proxyMode: "kernelspace",
    summary: "Windows: load balancers of the Host Network Service; has to be asked for, as it was not seen on a real node yet",
    load: () => import("@turnout/backend-winkernel"),
    loadTesting: () => import("@turnout/backend-winkernel/testing"),
    isNeverAuto: true,
    runsOn: "windows",
  },
];

/** What it takes to look for rules of all these backends, and to remove them: legacy iptables asks for a raw socket, eBPF's maps are read. */
export const LEFTOVER_RIGHTS: Rights = {
  CAP_NET_ADMIN: "remove rules of former proxies",
  CAP_NET_RAW: "remove rules of former proxies in legacy iptables",
  CAP_BPF: "remove what the ebpf backend left",
};

/** The one that help texts show. */
export const EXAMPLE_BACKEND = "nft";

/** The one that needs neither root nor namespaces, and answers at addresses that are mapped: what the demo on loopback runs. */
export const ROOTLESS_BACKEND = "userspace";

/** kube-proxy's mode whose settings count where no backend is chosen. */
export const DEFAULT_MODE = "iptables";

/** What `--backend` takes, for help texts. */
export const BACKEND_HELP: string = `${KNOWN_BACKENDS.map(({ name }) => name).join(", ")}, auto, an npm package, or a path to a backend module`;

/** Tell whether a module comes with turnout, and is not just named like one that does. */
export async function isKnownBackend(module: BackendModule): Promise<boolean> {
  const known = KNOWN_BACKENDS.find(({ name }) => name === module.name);
  return known !== undefined && ((await known.load()) as { readonly default?: unknown }).default === module;
}

/** The names of those that a platform of Node may have run. */
export function namesOn(platform: string): readonly string[] {
  const other = platform === "win32" ? undefined : "windows";
  return KNOWN_BACKENDS.filter(({ runsOn }) => runsOn !== other).map(({ name }) => name);
}

/** The backends that come with turnout, but for the one in use: their rules may still be in force. */
export async function otherBackends(inUse: string, platform: string): Promise<readonly BackendModule[]> {
  const others = namesOn(platform).filter((name) => name !== inUse);
  return await Promise.all(others.map((name) => loadBackend(name, "")));
}

/** What choosing a backend looks at. */
export interface BackendChoice {
  /** A name, `auto`, a package, or a path. */
  readonly spec: string;
  /** kube-proxy's mode word from the configuration; "" when none. */
  readonly mode: string;
  readonly world: World;
  readonly env: Pick<Environment, "platform" | "workingDirectory" | "signal">;
  /** Whether the host has to run the backend: `needed`; `wanted`: where it can run none, the first is taken all the same; `ignored`: nobody asks it. */
  readonly host: "needed" | "wanted" | "ignored";
  /** Where nothing names a backend, take the one whose rules, or whose kin's, are in force on this host. */
  readonly takesOver: boolean;
}

/** A backend that was chosen. */
export interface ChosenBackend {
  readonly module: BackendModule;
  /** Why, for people; undefined: it was asked for. */
  readonly because: string | undefined;
  /** Options with which it adopts what is in force; those that were given count before them. */
  readonly options: Readonly<Record<string, Plain>>;
}

/** How to have another one than was chosen. */
export const CHOICE_HINT: string = `choose with --backend ${knownNames()}, or with mode: in the configuration file`;

/**
 * Find the backend somebody asked for.
 *
 * Edges: `auto` takes the one the configuration's mode names. Where that names none, it is one whose rules are in force on this host and that
 * the host can run; else the first that the host can run. A dry run chooses as the real one does.
 * @throws {ProxyError} `invalid_object` for an unknown name or something that is no backend, or the host's first problem.
 */
export async function chooseBackend(choice: BackendChoice): Promise<ChosenBackend> {
  const { spec, mode } = choice;
  const { workingDirectory } = choice.env;
  if (spec !== "auto") return asked(await loadBackend(spec, workingDirectory));
  if (mode === "") return (await firstThatTakesOver(choice)) ?? (await firstThatRuns(choice));
  const known = knownBackend(mode);
  if (known === undefined) {
    throw new ProxyError("invalid_object", "no backend for this mode", {
      object: `mode ${mode}`,
      hint: `pass --backend ${knownNames()} to use another`,
    });
  }
  return asked(await loadBackend(known.name, workingDirectory));
}

/** The options of a backend, and of all that come with turnout where none is named. @throws {ProxyError} `invalid_object` when there is none of this name. */
export async function declaredOptions(spec: string, workingDirectory: string): Promise<Pick<BackendModule, "options">> {
  if (spec !== "auto") return await loadBackend(spec, workingDirectory);
  const all = await Promise.all(KNOWN_BACKENDS.map(({ name }) => loadBackend(name, workingDirectory)));
  return { options: Object.assign({}, ...all.map(({ options }) => options)) as OptionKinds };
}

/** Tell where a backend's rules are; of one that doesn't come with turnout nobody knows. */
export function rulePlaces(name: string): RulePlaces {
  const known = KNOWN_BACKENDS.find((one) => one.name === name);
  const { hasKubeChains = false, servesAtInput = false, answersItself = false, translatesAtDevices = false } = known ?? {};
  return { hasKubeChains, servesAtInput, answersItself, translatesAtDevices };
}

function asked(module: BackendModule): ChosenBackend {
  return { module, because: undefined, options: {} };
}

/** By its name, or kube-proxy's word for it. */
function knownBackend(word: string): KnownBackend | undefined {
  return KNOWN_BACKENDS.find(({ name, proxyMode }) => word === name || word === proxyMode);
}

function knownNames(): string {
  return KNOWN_BACKENDS.map(({ name }) => name).join("|");
}

/** Of those whose rules are in force here the best that can run; undefined: nothing is in force, or nobody is to look. */
async function firstThatTakesOver(choice: BackendChoice): Promise<ChosenBackend | undefined> {
  const { takesOver, world } = choice;
  const { platform, signal } = choice.env;
  if (!takesOver) return undefined;
  const modules = await Promise.all(namesOn(platform).map((name) => loadBackend(name, "")));
  for (const { backend, because, options } of reasonsOf(await findRules(modules, world, signal))) {
    const module = modules.find(({ name }) => name === backend);
    const problem = module === undefined ? undefined : await problemOf(module, choice);
    if (module !== undefined && problem === undefined) return { module, because, options };
    world.log.warn("another proxy's rules are in force, but this host can't run their backend", { backend, because, error: problem });
  }
  return undefined;
}

async function firstThatRuns(choice: BackendChoice): Promise<ChosenBackend> {
  let first: { readonly module: BackendModule; readonly problem: ProxyError } | undefined;
  for (const { name, isNeverAuto } of KNOWN_BACKENDS) {
    if (isNeverAuto === true) continue;
    const module = await loadBackend(name, choice.env.workingDirectory);
    const problem = await problemOf(module, choice);
    const because =
      first === undefined ? "it is the first that this host can run" : `this host can run it, and not the first: ${first.problem.message}`;
    if (problem === undefined) return { module, because, options: {} };
    first ??= { module, problem };
  }
  if (first !== undefined && choice.host === "wanted")
    return { module: first.module, because: `this host can run none, and it is the first: ${first.problem.message}`, options: {} };
  throw first?.problem ?? new ProxyError("host_unsupported", "no backend can run on this host");
}

/** Why this host can't run a backend; undefined: it can, or it need not. */
async function problemOf(module: BackendModule, { host, world, env: { signal } }: BackendChoice): Promise<ProxyError | undefined> {
  if (host === "ignored") return undefined;
  const { problems } = await withWorldOf(module, world, (own) => probeModule(module, module.parseOptions({}), own, signal));
  return problems[0];
}

/**
 * Load a backend by name (ours or kube-proxy's word for it), package or path; its default export is the module.
 * @throws {ProxyError} `invalid_object` when there is none.
 */
export async function loadBackend(spec: string, workingDirectory: string): Promise<BackendModule> {
  const known = knownBackend(spec);
  const object = `backend ${spec}`;
  const hint = `use ${knownNames()}, auto, an installed package, or a path starting with ./ or /`;
  const loaded = known === undefined ? await importExternal({ spec, object, hint }, workingDirectory) : await known.load();
  return parseModule((loaded as { readonly default?: unknown }).default, object);
}

/** What a backend ships for the conformance kit. */
export type BackendKit = { readonly createFakeHost: CreateFakeHost } | { readonly examine: Examine };

/**
 * Load what a backend ships for the conformance kit: `createFakeHost`, or else `examine`, of its door `./testing`, or of the module itself when the
 * backend is a file.
 * @param host a package or path that has it instead; undefined: as above
 * @throws {ProxyError} `invalid_object` when there is none.
 */
export async function loadKit(spec: string, host: string | undefined, workingDirectory: string): Promise<BackendKit> {
  const known = knownBackend(spec);
  const isFile = isPath(spec) && !isPackageDirectory(spec, workingDirectory);
  const where = host ?? (isFile ? spec : `${spec.replace(/\/+$/, "")}/testing`);
  const object = `fake host ${where}`;
  const isOurs = host === undefined && known !== undefined;
  const hint =
    "a backend exports createFakeHost from its door ./testing; elsewhere, pass --host with a package, or a path starting with ./ or /";
  const loaded = isOurs ? await known.loadTesting() : await importExternal({ spec: where, object, hint }, workingDirectory);
  const { createFakeHost, examine } = loaded as { readonly createFakeHost?: unknown; readonly examine?: unknown };
  if (typeof createFakeHost === "function") return { createFakeHost: createFakeHost as CreateFakeHost };
  if (typeof examine === "function") return { examine: examine as Examine };
  throw new ProxyError("invalid_object", "it does not export createFakeHost", { object, hint: "pass --host with the module that does" });
}
