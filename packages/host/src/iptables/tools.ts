import { ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import { iptablesError } from "./errors.ts";

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
const KUBELET = /^:(KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /m;
const PROXY = /^:KUBE-PROXY-CANARY /m;

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
 * Edges: never makes a legacy table come into being by looking for it.
 * @throws {ProxyError} `tool_missing` when there is no iptables, or not the wanted one; what listing fails with.
 * @source kubernetes-sigs/iptables-wrappers
 */
export async function chooseIptables(wanted: "auto" | IptablesVariant, exec: Exec, signal: AbortSignal): Promise<IptablesChoice> {
  const { programs, plain } = await findIptables(exec, signal);
  const found = wanted === "auto" ? programs : programs.filter(({ variant }) => variant === wanted);
  const [only] = found;
  if (only === undefined) {
    const what = wanted === "auto" ? "iptables is" : `the ${wanted} variant of iptables is`;
    throw new ProxyError("tool_missing", `${what} not installed`, { hint: "apt-get install iptables" });
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

/** What of Kubernetes is in one variant. */
interface Look {
  readonly program: IptablesProgram;
  /** Whose chains are there; undefined: nobody's. */
  readonly owner: "kubelet's chains" | "a service proxy's chains" | undefined;
}

async function lookInto(program: IptablesProgram, exec: Exec, signal: AbortSignal): Promise<Look> {
  // The mangle table is small, but asking the legacy variant for it would make it: it is asked for what it has.
  const args = program.variant === "nft" ? ["-t", "mangle"] : [];
  const text = (await Promise.all(FAMILIES.map((family) => save(program, family, args, exec, signal)))).join("\n");
  const owner = KUBELET.test(text) ? "kubelet's chains" : PROXY.test(text) ? "a service proxy's chains" : undefined;
  return { program, owner };
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
  const file = iptablesName(family, program, "-save");
  try {
    const { code, stdout, stderr } = await exec.run(file, args, { signal });
    if (code === 0) return stdout;
    const error = iptablesError(stderr, `be listed by ${file}`);
    if (error.code === "permission_denied") throw error;
    return "";
  } catch (error) {
    if (ProxyError.is(error, "tool_missing")) return "";
    throw error;
  }
}
