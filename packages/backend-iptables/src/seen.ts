import type { IPFamily, KernelObject, SeenPart } from "@turnout/core/backend";
import type { NftChange, OwnCommits, SignWatch } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import { placeOf } from "@turnout/host/iptables/text";
import type { TableName } from "@turnout/host/iptables/text";
import { GUARD_CHAIN, isOwnChain, SHARED_CHAINS } from "./layout.ts";
import type { IptablesObject } from "./objects.ts";
import { JUMP_SOURCES, parseSaved, savedOf } from "./observe.ts";

const TABLES: readonly TableName[] = ["nat", "filter", "mangle"];
const RULES: readonly string[] = ["chain", "shared", "rule", "jumps", "guard"] satisfies readonly IptablesObject["kind"][];
/** Each takes a run of the tool, which reads the names of all chains first; where more were touched, as by a flush, the table is read as a whole. */
const LISTED_MAX = 16;

/** A chain that a commit touched, and whether it deleted it. */
export interface TouchedChain {
  readonly table: TableName;
  readonly chain: string;
  readonly isGone: boolean;
}

/**
 * Say which chains with rules of ours a commit has touched, by `TABLE CHAIN`; undefined: that can't be told. Pure.
 *
 * Edges: none of others', so CNI plugins and kubelet may work in theirs without a look.
 */
export function touchedChains(changes: readonly NftChange[] | undefined, family: IPFamily): ReadonlyMap<string, TouchedChain> | undefined {
  if (changes === undefined) return undefined;
  const ip = family === "IPv4" ? "ip" : "ip6";
  const touched = new Map<string, TouchedChain>();
  for (const { table: full, verb, kind, name } of changes) {
    const table = TABLES.find((one) => full === `${ip} ${one}`);
    if (table === undefined) continue;
    if (kind === "table") return undefined;
    const isOurs = isListed(table, name) || isOwnChain(table, name);
    if ((kind !== "chain" && kind !== "rule") || !isOurs) continue;
    touched.set(`${table} ${name}`, { table, chain: name, isGone: kind === "chain" && verb === "deleted" });
  }
  return touched;
}

/** Chains of many, that have to be read: others', and those with rules of many rows. */
function isListed(table: TableName, chain: string): boolean {
  return SHARED_CHAINS[table].includes(chain) || JUMP_SOURCES.has(`${table} ${chain}`) || (table === "filter" && chain === GUARD_CHAIN);
}

/** What seeing takes. */
export interface ChainSight {
  readonly tool: Pick<IptablesTool, "listChain" | "save">;
  readonly own: OwnCommits;
  readonly family: IPFamily;
  readonly hasGuard: boolean;
}

/** Read the chains that a commit touched: one by one where they are few. @throws {ProxyError} what the tool fails with. */
export async function seeChains(
  touched: ReadonlyMap<string, TouchedChain>,
  { tool, own, family, hasGuard }: ChainSight,
  signal: AbortSignal,
): Promise<SeenPart> {
  const isCurrent = own.sinceNow();
  const readable = [...touched.values()].filter(({ table, chain, isGone }) => isListed(table, chain) || !isGone);
  const textOf = async (table: TableName): Promise<string> => {
    const chains = readable.filter((one) => one.table === table).map(({ chain }) => chain);
    if (chains.length > LISTED_MAX) return await tool.save(table, signal);
    const texts: string[] = [];
    for (const chain of chains) texts.push((await tool.listChain(table, chain, signal)) ?? "");
    return savedOf(table, texts);
  };
  const saved = { nat: await textOf("nat"), filter: await textOf("filter"), mangle: await textOf("mangle") };
  const covers = (object: KernelObject): boolean => RULES.includes(object.kind) && touched.has(chainOf(object));
  const found = [...parseSaved(saved, family, hasGuard)].filter(([, object]) => covers(object));
  return { covers, objects: new Map<string, KernelObject>(found), isCurrent };
}

/** What reading tables takes. */
export interface TableSight extends Pick<ChainSight, "family" | "hasGuard"> {
  readonly tool: Pick<IptablesTool, "save">;
  readonly signs: Pick<SignWatch, "sinceNow">;
}

/** Read whole tables, as the legacy variant can't do less. @throws {ProxyError} what the tool fails with. */
export async function seeTables(
  tables: readonly TableName[],
  { tool, signs, family, hasGuard }: TableSight,
  signal: AbortSignal,
): Promise<SeenPart> {
  const isCurrent = signs.sinceNow();
  const texts = await Promise.all(tables.map((table) => tool.save(table, signal)));
  const saved = { nat: "", filter: "", mangle: "", ...Object.fromEntries(tables.map((table, index) => [table, texts[index] ?? ""])) };
  const covers = (object: KernelObject): boolean => RULES.includes(object.kind) && tables.includes(placeOf(object).table);
  return { covers, objects: new Map<string, KernelObject>(parseSaved(saved, family, hasGuard)), isCurrent };
}

function chainOf(object: KernelObject): string {
  const { table, chain } = placeOf(object);
  return `${table} ${chain}`;
}
