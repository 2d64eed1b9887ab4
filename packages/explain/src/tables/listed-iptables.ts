import { FAMILIES } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import type { NftChain } from "@turnout/host";
import { iptablesName, readListing } from "@turnout/host/iptables";
import type { IptablesProgram, IptablesVariant, ListedChain } from "@turnout/host/iptables";
import { jumpOf } from "@turnout/host/iptables/text";
import { isIptablesTable } from "./listed-nft.ts";

/** Chains of one table that are kept with their rules, at most. */
const CHAINS_MAX = 100;
/** Rules of one chain that are kept, at most. */
const RULES_MAX = 300;
/** Names of chains of one table that are kept, at most. */
const NAMES_MAX = 1_000;
/** Where a service proxy's many chains begin, ours or kube-proxy's: they are not followed. */
const SERVICES = /^KUBE-(?:SERVICES|EXTERNAL-SERVICES|NODEPORTS|NODE-PORT|LOAD-BALANCER|SVC-|SVL-|EXT-|FW-|SEP-|XLB-)/;

/** A chain of one Service or endpoint; the marker of Turnout is none. */
const OF_ONE_SERVICE = /^KUBE-(?:SVC|SVL|EXT|FW|SEP|XLB)-[A-Z0-9]{16}$/;

/** One chain of iptables. */
export interface IptablesChain extends ListedChain {
  readonly name: string;
  /** It has more rules than are listed here. */
  readonly isCut: boolean;
}

/** A table of iptables that exists. */
export interface IptablesTable {
  readonly variant: IptablesVariant;
  readonly family: IPFamily;
  /** E.g. `nat`. */
  readonly table: string;
  /** How many chains it has. */
  readonly chainCount: number;
  /** The names of its chains but for those of single Services and endpoints, a thousand at most. */
  readonly names: readonly string[];
  /** The built-in chains and those that they call, without a service proxy's. */
  readonly chains: readonly IptablesChain[];
}

/** Keep of a table the built-in chains and what they call. */
async function tableOf(
  about: Pick<IptablesTable, "variant" | "family" | "table">,
  chainNames: readonly string[],
  builtIn: readonly string[],
  read: (chain: string) => Promise<ListedChain | undefined>,
): Promise<IptablesTable> {
  const known = new Set(chainNames);
  const chains = new Map<string, IptablesChain>();
  const next = [...builtIn];
  for (const name of next) {
    if (chains.size >= CHAINS_MAX) break;
    if (chains.has(name) || SERVICES.test(name)) continue;
    const found = await read(name);
    if (found === undefined) continue;
    const rules = found.rules.slice(0, RULES_MAX);
    chains.set(name, { name, policy: found.policy, rules, isCut: rules.length < found.rules.length });
    for (const rule of rules) {
      const target = jumpOf(rule);
      if (target !== undefined && known.has(target)) next.push(target);
    }
  }
  const names = chainNames.filter((name) => !OF_ONE_SERVICE.test(name)).slice(0, NAMES_MAX);
  return { ...about, chainCount: chainNames.length, names, chains: [...chains.values()] };
}

/** Where the kernel says which tables of the legacy variant exist; asking the tool for one by name would make it. */
const LEGACY_NAMES: Readonly<Record<IPFamily, string>> = { IPv4: "/proc/net/ip_tables_names", IPv6: "/proc/net/ip6_tables_names" };

/** What looking at iptables takes. */
export interface IptablesLook {
  readonly programs: readonly IptablesProgram[];
  readonly exec: Exec;
  readonly read: (path: string) => Promise<string | undefined>;
  readonly signal: AbortSignal;
}

/**
 * List the tables of the legacy variant, in both families.
 *
 * Edges: the kernel gives a whole table or nothing, so a large one of a service proxy costs some tenths of a second; none comes into being.
 */
export async function listLegacyTables({ programs, exec, read, signal }: IptablesLook): Promise<readonly IptablesTable[]> {
  const program = programs.find(({ variant }) => variant === "legacy");
  if (program === undefined) return [];
  const tables: IptablesTable[] = [];
  for (const family of FAMILIES) {
    if (((await read(LEGACY_NAMES[family])) ?? "").trim() === "") continue;
    const { code, stdout } = await exec.run(iptablesName(family, program, "-save"), [], { signal, timeoutMs: 20_000 });
    if (code !== 0) continue;
    for (const text of stdout.split(/^\*/m).slice(1)) {
      const [table = ""] = text.split("\n", 1);
      const listed = readListing(text, (chain) => !SERVICES.test(chain));
      const builtIn = [...listed].filter(([, { policy }]) => policy !== undefined).map(([name]) => name);
      const readRules = (chain: string): Promise<ListedChain | undefined> => Promise.resolve(listed.get(chain));
      tables.push(await tableOf({ variant: "legacy", family, table }, [...listed.keys()], builtIn, readRules));
    }
  }
  return tables;
}

/** List the tables of the nf_tables variant among all chains of nf_tables, reading chain by chain: the many of a service proxy cost nothing. */
export async function listNftTables(
  chains: readonly NftChain[],
  { programs, exec, signal }: IptablesLook,
): Promise<readonly IptablesTable[]> {
  const program = programs.find(({ variant }) => variant === "nft");
  if (program === undefined) return [];
  const tables: IptablesTable[] = [];
  const mine = Map.groupBy(chains.filter(isIptablesTable), ({ family, table }) => `${family} ${table}`);
  for (const [key, all] of mine) {
    const [word, table = ""] = key.split(" ");
    const family: IPFamily = word === "ip" ? "IPv4" : "IPv6";
    const file = iptablesName(family, program, "");
    const builtIn = all.filter(({ base }) => base !== undefined).map(({ name }) => name);
    const names = all.map(({ name }) => name);
    const read = async (chain: string): Promise<ListedChain | undefined> => {
      const { code, stdout } = await exec.run(file, ["-t", table, "-S", chain], { signal, timeoutMs: 20_000 });
      return code === 0 ? readListing(stdout).get(chain) : undefined;
    };
    tables.push(await tableOf({ variant: "nft", family, table }, names, builtIn, read));
  }
  return tables;
}
