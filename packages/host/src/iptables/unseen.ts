import { ProxyError } from "@turnout/core";
import { installHint } from "../exec/tool-packages.ts";
import type { IPFamily } from "@turnout/core";
import type { IptablesProgram, IptablesVariant } from "./tools.ts";

const VARIANTS: readonly IptablesVariant[] = ["nft", "legacy"];
/** Of Kubernetes, and not of kubelet, which needs no proxy to make its own. */
const PROXY_CHAIN = /^KUBE-(?!KUBELET-CANARY$|IPTABLES-HINT$|FIREWALL$|MARK-DROP$|MARK-MASQ$|POSTROUTING$)/;

/** What the kernel tells without iptables. */
export interface KernelTables {
  nftChains(): Promise<readonly { readonly family: string; readonly table: string; readonly name: string }[]>;
  /** Of the legacy variant, by name. @throws {ProxyError} `permission_denied` where only root may know. */
  legacyTables(family: IPFamily): Promise<readonly string[]>;
}

/**
 * Say where rules of a service proxy may be that nobody can look for, because the program of that variant is not here.
 *
 * Shape: one error for each variant in which the kernel has something: chains of Kubernetes in nf_tables, or any table of legacy iptables, whose
 * rules the kernel tells to nobody else. Without any program, and where the kernel has nothing, it is one `tool_missing`.
 * @throws {ProxyError} what asking the kernel fails with.
 */
export async function unseenVariants(
  kernel: KernelTables,
  family: IPFamily,
  programs: readonly IptablesProgram[],
): Promise<readonly ProxyError[]> {
  const missing = VARIANTS.filter((variant) => !programs.some((program) => program.variant === variant));
  const unseen: ProxyError[] = [];
  for (const variant of missing) {
    const object = await (variant === "nft" ? chainsOf(kernel, family) : tablesOf(kernel, family, programs));
    if (object === undefined) continue;
    const what = `the ${variant} variant of iptables is not installed, but the kernel has rules of it`;
    unseen.push(new ProxyError("host_unsupported", what, { object: `${family}: ${object}`, hint: installHint("iptables") }));
  }
  if (programs.length > 0 || unseen.length > 0) return unseen;
  return [new ProxyError("tool_missing", "iptables is not installed", { hint: installHint("iptables") })];
}

async function chainsOf(kernel: KernelTables, family: IPFamily): Promise<string | undefined> {
  const own = family === "IPv4" ? "ip" : "ip6";
  const found = (await kernel.nftChains()).filter((chain) => chain.family === own && PROXY_CHAIN.test(chain.name));
  if (found.length === 0) return undefined;
  return `${found.length} KUBE-* chains in ${[...new Set(found.map(({ table }) => table))].toSorted().join(", ")}`;
}

async function tablesOf(kernel: KernelTables, family: IPFamily, programs: readonly IptablesProgram[]): Promise<string | undefined> {
  try {
    const tables = await kernel.legacyTables(family);
    return tables.length === 0 ? undefined : `tables ${tables.join(", ")}`;
  } catch (error) {
    // Hosts without the legacy program seldom have its tables: what only root may know is no reason to doubt one that has the other program.
    if (programs.length > 0 && ProxyError.is(error, "permission_denied")) return undefined;
    throw error;
  }
}
