import { ProxyError } from "@turnout/core";
import type { Exec, ExecResult, IPFamily } from "@turnout/core";
import { installHint } from "../exec/tool-packages.ts";
import { hidesRules, iptablesError } from "./errors.ts";

/** The two implementations of iptables: one kernel can hold rules of both, and obeys both. */
export type IptablesVariant = "legacy" | "nft";

/** The programs of one variant. */
export interface IptablesProgram {
  readonly variant: IptablesVariant;
  /** e.g. `1.8.9`. */
  readonly version: string;
  /** What stands behind `iptables` and `ip6tables` in the names: `-nft`, `-legacy`, or nothing. */
  readonly suffix: string;
}

/** What is installed; `plain` is the one that `iptables` without a suffix is. */
export interface InstalledIptables {
  readonly programs: readonly IptablesProgram[];
  readonly plain: IptablesProgram | undefined;
}

/** Which programs to use for both families, and why. */
export interface IptablesChoice extends IptablesProgram {
  /** For people. */
  readonly because: string;
  /** Whose rules are in the other variant, where there are Kubernetes' own in both. */
  readonly mixed: string | undefined;
}

const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** Chains of the mangle table that say who is there. */
const OWNERS = { kubelet: ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"], proxy: ["KUBE-PROXY-CANARY"] } as const;
/** Where the kernel names the tables that the legacy variant has made. */
const LEGACY_TABLES: Readonly<Record<IPFamily, string>> = { IPv4: "/proc/net/ip_tables_names", IPv6: "/proc/net/ip6_tables_names" };

/** Name one program, e.g. `ip6tables-nft-restore`. */
export function iptablesName(family: IPFamily, { suffix }: Pick<IptablesProgram, "suffix">, what: "" | "-restore" | "-save"): string {
  return `${family === "IPv4" ? "iptables" : "ip6tables"}${suffix}${what}`;
}

/** Read what `iptables -V` says, e.g. `iptables v1.8.9 (nf_tables)`; before 1.8 there was only legacy. Undefined for anything else. */
export function parseIptablesVersion(output: string): Pick<IptablesProgram, "variant" | "version"> | undefined {
  const [, version, word] = /^ip6?tables v(\d+(?:\.\d+)+)(?: \((\w+)\))?/.exec(output) ?? [];
  if (version === undefined) return undefined;
  return { version, variant: word === "nf_tables" ? "nft" : "legacy" };
}

/** Look which variants are installed. Empty where none is. @throws {ProxyError} what running a program that is there may throw. */
export async function findIptables(exec: Exec, signal: AbortSignal): Promise<InstalledIptables> {
  const [nft, legacy, plain] = await Promise.all(["-nft", "-legacy", ""].map((suffix) => programOf(exec, suffix, signal)));
  const programs: IptablesProgram[] = [];
  for (const program of [nft, legacy, plain]) {
    if (program !== undefined && !programs.some(({ variant }) => variant === program.variant)) programs.push(program);
  }
  return { programs, plain };
}

async function programOf(exec: Exec, suffix: string, signal: AbortSignal): Promise<IptablesProgram | undefined> {
  try {
    const { code, stdout } = await exec.run(`iptables${suffix}`, ["-V"], { signal, timeoutMs: 10_000 });
    const parsed = code === 0 ? parseIptablesVersion(stdout) : undefined;
    return parsed === undefined ? undefined : { ...parsed, suffix };
  } catch (error) {
    if (ProxyError.is(error, "tool_missing")) return undefined;
    throw error;
  }
}

/**
 * Choose the variant that the rest of this host uses, as the images of kube-proxy do: where kubelet's chains are, else a service proxy's,
 * else where more rules are, else what `iptables` is.
 *
 * Edges: never makes a legacy table come into being by looking for it; `installed`: what {@link findIptables} has just found.
 * @throws {ProxyError} `tool_missing` when there is no iptables, or not the wanted one; what listing fails with.
 * @source kubernetes-sigs/iptables-wrappers
 */
export async function chooseIptables(
  wanted: "auto" | IptablesVariant,
  exec: Exec,
  signal: AbortSignal,
  installed?: InstalledIptables,
): Promise<IptablesChoice> {
  const { programs, plain } = installed ?? (await findIptables(exec, signal));
  const found = wanted === "auto" ? programs : programs.filter(({ variant }) => variant === wanted);
  const [only] = found;
  if (only === undefined) {
    const what = wanted === "auto" ? "iptables is" : `the ${wanted} variant of iptables is`;
    throw new ProxyError("tool_missing", `${what} not installed`, { hint: installHint("iptables") });
  }
  const looks = await Promise.all(programs.map((program) => lookInto(program, exec, signal)));
  const best = wanted === "auto" ? await bestOf(looks, plain, exec, signal) : { program: only, because: "it was asked for" };
  const other = looks.find(({ program, owner }) => program.variant !== best.program.variant && owner !== undefined);
  const mixed = other === undefined ? undefined : `${other.owner} of the ${other.program.variant} variant`;
  return { ...best.program, because: best.because, mixed };
}

/**
 * Have the legacy variant load its kernel modules, as its tools do when a table is asked for; for the other variant nothing is to be done.
 *
 * Shape: for a probe: that takes CAP_SYS_MODULE, which a proxy that runs has given up.
 */
export async function loadLegacyModules(program: IptablesProgram, exec: Exec, signal: AbortSignal): Promise<void> {
  if (program.variant !== "legacy") return;
  await Promise.all(FAMILIES.map((family) => save(program, family, ["-t", "filter"], exec, signal)));
}

/**
 * Say why families can't be done with these programs on this host: a program is missing, or the kernel lacks the family or its nat. Absent: it can be
 * done, or nobody can tell just now.
 * @throws {ProxyError} what running a program that is there may throw.
 * @source kubernetes pkg/util/iptables Present
 */
export async function lackingFamilies(
  program: IptablesProgram,
  exec: Exec,
  signal: AbortSignal,
): Promise<Readonly<Partial<Record<IPFamily, string>>>> {
  const lacks: Partial<Record<IPFamily, string>> = {};
  await Promise.all(
    FAMILIES.map(async (family) => {
      const file = iptablesName(family, program, "");
      try {
        const { code, stderr } = await exec.run(file, ["-w", "5", "-t", "nat", "-S", "POSTROUTING"], { signal, timeoutMs: 10_000 });
        const error = code === 0 ? undefined : iptablesError(stderr, "list nat");
        if (error?.code === "host_unsupported" && !hidesRules(error)) lacks[family] = error.object ?? error.what;
      } catch (error) {
        if (!ProxyError.is(error, "tool_missing")) throw error;
        lacks[family] = `${file} is not installed`;
      }
    }),
  );
  return lacks;
}

/** What of Kubernetes is in one variant. */
interface Look {
  readonly program: IptablesProgram;
  /** Whose chains are there; undefined: nobody's. */
  readonly owner: "kubelet's chains" | "a service proxy's chains" | undefined;
}

async function lookInto(program: IptablesProgram, exec: Exec, signal: AbortSignal): Promise<Look> {
  const hasSome = async (chains: readonly string[]): Promise<boolean> => (await Promise.all(chains.map(hasChain))).some((has) => has);
  const saved = program.variant === "legacy" ? await legacyLook(program, exec, signal) : "";
  // One chain of the nft variant is a matter of milliseconds. Whoever lists a table of it has the kernel walk all chains of all tables, for seconds.
  const hasChain = async (chain: string): Promise<boolean> => {
    if (program.variant === "legacy") return saved.includes(`\n:${chain} `);
    return (await Promise.all(FAMILIES.map((family) => isListed(program, family, chain, exec, signal)))).some((is) => is);
  };
  const [hasKubelet, hasProxy] = await Promise.all([hasSome(OWNERS.kubelet), hasSome(OWNERS.proxy)]);
  return { program, owner: hasKubelet ? "kubelet's chains" : hasProxy ? "a service proxy's chains" : undefined };
}

/** The mangle tables of the legacy variant, which are small; asking for one that isn't there would make it. */
async function legacyLook(program: IptablesProgram, exec: Exec, signal: AbortSignal): Promise<string> {
  const texts = FAMILIES.map(async (family) => {
    const tables = await legacyTables(family, exec, signal);
    if (tables === undefined) return await save(program, family, [], exec, signal);
    return tables.includes("mangle") ? await save(program, family, ["-t", "mangle"], exec, signal) : "";
  });
  return (await Promise.all(texts)).join("\n");
}

/** The tables of the legacy variant; undefined: this can't be told here, as only root may read it. Read by a program, as the tools are run elsewhere in tests. */
async function legacyTables(family: IPFamily, exec: Exec, signal: AbortSignal): Promise<readonly string[] | undefined> {
  try {
    const { code, stdout } = await exec.run("cat", [LEGACY_TABLES[family]], { signal, timeoutMs: 10_000 });
    return code === 0 ? stdout.split("\n") : undefined;
  } catch (error) {
    if (ProxyError.is(error, "tool_missing")) return undefined;
    throw error;
  }
}

async function isListed(program: IptablesProgram, family: IPFamily, chain: string, exec: Exec, signal: AbortSignal): Promise<boolean> {
  const file = iptablesName(family, program, "");
  const { code } = await ran(file, ["-t", "mangle", "-S", chain], exec, signal);
  return code === 0;
}

async function bestOf(
  looks: readonly Look[],
  plain: IptablesProgram | undefined,
  exec: Exec,
  signal: AbortSignal,
): Promise<{ readonly program: IptablesProgram; readonly because: string }> {
  for (const owner of ["kubelet's chains", "a service proxy's chains"] as const) {
    const found = looks.find((look) => look.owner === owner);
    if (found !== undefined) return { program: found.program, because: `${owner} are there` };
  }
  const fallback = plain ?? looks[0]?.program;
  if (fallback === undefined) throw new ProxyError("tool_missing", "iptables is not installed");
  if (looks.length < 2) return { program: fallback, because: "no other is installed" };
  const counts = await Promise.all(
    looks.map(async ({ program }) => {
      const texts = await Promise.all(FAMILIES.map((family) => save(program, family, [], exec, signal)));
      return { program, rules: texts.join("\n").match(/^-A /gm)?.length ?? 0 };
    }),
  );
  const most = counts.reduce((best, count) => (count.rules > best.rules ? count : best));
  if (counts.every(({ rules }) => rules === most.rules)) return { program: fallback, because: "it is what iptables is here" };
  return { program: most.program, because: "most rules are there" };
}

/** Everything of one family; "" where this kernel has no such family, whose rules nobody can have made then. */
async function save(program: IptablesProgram, family: IPFamily, args: readonly string[], exec: Exec, signal: AbortSignal): Promise<string> {
  const { code, stdout } = await ran(iptablesName(family, program, "-save"), args, exec, signal);
  return code === 0 ? stdout : "";
}

/** Run a program that only looks; one that is missing sees nothing. @throws {ProxyError} `permission_denied`, and what running it throws. */
async function ran(file: string, args: readonly string[], exec: Exec, signal: AbortSignal): Promise<Pick<ExecResult, "code" | "stdout">> {
  try {
    const result = await exec.run(file, args, { signal });
    const error = result.code === 0 ? undefined : iptablesError(result.stderr, `be listed by ${file}`);
    if (error?.code === "permission_denied") throw error;
    return result;
  } catch (error) {
    if (ProxyError.is(error, "tool_missing")) return { code: 1, stdout: "" };
    throw error;
  }
}
