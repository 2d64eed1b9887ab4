import { objectId } from "@turnout/core/backend";
import type { IPFamily, KernelObject, SeenPart } from "@turnout/core/backend";
import type { NftChange, OwnCommits } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import { placeOf } from "@turnout/host/iptables/text";
import type { TableName } from "@turnout/host/iptables/text";
import { GUARD_CHAIN, isOwnChain, SHARED_CHAINS } from "./layout.ts";
import type { IptablesObject } from "./objects.ts";
import { JUMP_SOURCES, parseSaved, savedOf } from "./observe.ts";

const TABLES: readonly TableName[] = ["nat", "filter", "mangle"];
const RULES: readonly string[] = ["chain", "shared", "rule", "jumps", "guard"] satisfies readonly IptablesObject["kind"][];
/** Each takes a run of the tool; of more single ones of ours nothing is read. */
const LISTED_MAX = 24;
/** A rule that is none: a chain that may hold anything is written anew. */
const UNKNOWN = "?";

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
  readonly tool: Pick<IptablesTool, "listChain">;
  readonly own: OwnCommits;
  readonly family: IPFamily;
  readonly hasGuard: boolean;
}

/** Read the chains that a commit touched, one by one. @throws {ProxyError} what the tool fails with. */
export async function seeChains(
  touched: ReadonlyMap<string, TouchedChain>,
  { tool, own, family, hasGuard }: ChainSight,
  signal: AbortSignal,
): Promise<SeenPart> {
  const isCurrent = own.sinceNow();
  const texts: Record<TableName, string[]> = { nat: [], filter: [], mangle: [] };
  const unread: TouchedChain[] = [];
  let listed = 0;
  for (const one of touched.values()) {
    const { table, chain, isGone } = one;
    if (!isListed(table, chain) && (isGone || ++listed > LISTED_MAX)) {
      if (!isGone) unread.push(one);
      continue;
    }
    const text = await tool.listChain(table, chain, signal);
    if (text !== undefined) texts[table].push(text);
  }
  const saved = { nat: savedOf("nat", texts.nat), filter: savedOf("filter", texts.filter), mangle: savedOf("mangle", texts.mangle) };
  const objects = new Map<string, KernelObject>(parseSaved(saved, family, hasGuard));
  for (const { table, chain } of unread) {
    const object = { kind: "chain", key: `${table} ${chain}`, value: UNKNOWN };
    objects.set(objectId(object), object);
  }
  return { covers: (object) => RULES.includes(object.kind) && touched.has(chainOf(object)), objects, isCurrent };
}

function chainOf(object: KernelObject): string {
  const { table, chain } = placeOf(object);
  return `${table} ${chain}`;
}
