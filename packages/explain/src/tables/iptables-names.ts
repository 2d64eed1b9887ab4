import { FAMILIES } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import { IPTABLES_TABLES } from "@turnout/host";
import type { NftChain } from "@turnout/host";
import { iptablesName } from "@turnout/host/iptables";
import type { IptablesProgram, IptablesVariant } from "@turnout/host/iptables";

/** Names of chains of one table that are kept, at most. */
const NAMES_MAX = 1_000;
/** A chain of one Service or endpoint; the marker of Turnout is none. */
const OF_ONE_SERVICE = /^KUBE-(?:SVC|SVL|EXT|FW|SEP|XLB)-[A-Z0-9]{16}$/;
/** Where the kernel says which tables of the legacy variant exist; asking the tool for one by name would make it. */
const LEGACY_NAMES: Readonly<Record<IPFamily, string>> = { IPv4: "/proc/net/ip_tables_names", IPv6: "/proc/net/ip6_tables_names" };

/** A table of iptables that exists. */
export interface IptablesTable {
  readonly variant: IptablesVariant;
  readonly family: IPFamily;
  /** E.g. `nat`. */
  readonly table: string;
  /** The names of its chains but for those of single Services and endpoints, a thousand at most. */
  readonly names: readonly string[];
}

/** Whether a chain of nf_tables is of a table that iptables has, by the table's name. */
export function isIptablesTable({ family, table }: Pick<NftChain, "family" | "table">): boolean {
  return (family === "ip" || family === "ip6") && IPTABLES_TABLES.has(table);
}

/** Name the tables of the nf_tables variant among all chains of nf_tables. Pure. */
export function namesInNft(chains: readonly NftChain[]): readonly IptablesTable[] {
  const mine = Map.groupBy(chains.filter(isIptablesTable), ({ family, table }) => `${family} ${table}`);
  return Array.from(mine, ([key, all]) => {
    const [word, table = ""] = key.split(" ");
    return tableOf(
      "nft",
      word === "ip" ? "IPv4" : "IPv6",
      table,
      all.map(({ name }) => name),
    );
  });
}

/**
 * Name the tables of the legacy variant, in both families.
 *
 * Edges: the kernel gives a whole table or nothing, so a large one of a service proxy costs some tenths of a second; none comes into being.
 */
export async function namesInLegacy(
  programs: readonly IptablesProgram[],
  exec: Exec,
  read: (path: string) => Promise<string | undefined>,
  signal: AbortSignal,
): Promise<readonly IptablesTable[]> {
  const program = programs.find(({ variant }) => variant === "legacy");
  if (program === undefined) return [];
  const tables: IptablesTable[] = [];
  for (const family of FAMILIES) {
    if (((await read(LEGACY_NAMES[family])) ?? "").trim() === "") continue;
    const { code, stdout } = await exec.run(iptablesName(family, program, "-save"), [], { signal, timeoutMs: 20_000 });
    if (code !== 0) continue;
    for (const text of stdout.split(/^\*/m).slice(1)) {
      const names = Array.from(text.matchAll(/^:(\S+)/gm), ([, name = ""]) => name);
      tables.push(tableOf("legacy", family, text.slice(0, text.indexOf("\n")), names));
    }
  }
  return tables;
}

function tableOf(variant: IptablesVariant, family: IPFamily, table: string, all: readonly string[]): IptablesTable {
  return { variant, family, table, names: all.filter((name) => !OF_ONE_SERVICE.test(name)).slice(0, NAMES_MAX) };
}
