import { objectId } from "@turnout/core/backend";
import type { IPFamily, KernelObject, SeenPart } from "@turnout/core/backend";
import type { NftChange, OwnCommits, FingerprintWatch } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import type { TableName } from "@turnout/host/iptables/text";
import { GUARD_CHAIN, isOwnChain, SHARED_CHAINS } from "../layout.ts";
import type { IptablesObject } from "../objects.ts";
import { JUMP_SOURCES, parseSaved, savedOf } from "../observe.ts";

const TABLES: readonly TableName[] = ["nat", "filter", "mangle"];
const RULES: readonly string[] = ["chain", "shared", "rule", "jumps", "guard"] satisfies readonly IptablesObject["kind"][];
/** Each takes a run of the tool, which reads the names of all chains first; where more were touched, as by a flush, the table is read as a whole. */
const LISTED_MAX = 16;

/** A chain that a commit touched, and what became of it: it was deleted, only rules were taken, or anything else. */
export interface TouchedChain {
  readonly table: TableName;
  readonly chain: string;
  readonly fate: "gone" | "robbed" | "changed";
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
    const key = `${table} ${name}`;
    touched.set(key, { table, chain: name, fate: fateBy({ kind, verb }, touched.get(key)?.fate) });
  }
  return touched;
}

/** What has become of a chain by one thing more that was done. */
function fateBy({ kind, verb }: Pick<NftChange, "kind" | "verb">, fate: TouchedChain["fate"] | undefined): TouchedChain["fate"] {
  if (kind === "chain") return verb === "deleted" ? "gone" : "changed";
  return verb === "deleted" && (fate ?? "robbed") === "robbed" ? "robbed" : "changed";
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

/**
 * Say what is left in the chains that a commit touched. Those are read, one by one where they are few, of which the commit doesn't tell it.
 *
 * Shape: of a row's chain that lost rules and got none nothing is read, whether it has others left or not. It counts as empty: its rules are written
 * as a whole, and that empties it first. So nothing is listed after a flush, which would take longer than the commits of single rules.
 * @throws {ProxyError} what the tool fails with.
 */
export async function seeChains(
  touched: ReadonlyMap<string, TouchedChain>,
  { tool, own, family, hasGuard }: ChainSight,
  signal: AbortSignal,
): Promise<SeenPart> {
  const isCurrent = own.sinceNow();
  const readable = [...touched.values()].filter(({ table, chain, fate }) => isListed(table, chain) || fate === "changed");
  const robbed = [...touched.values()].filter(({ table, chain, fate }) => !isListed(table, chain) && fate === "robbed");
  const textOf = async (table: TableName): Promise<string> => {
    const chains = readable.filter((one) => one.table === table).map(({ chain }) => chain);
    if (chains.length > LISTED_MAX) return await tool.save(table, signal);
    const texts = await Promise.all(chains.map((chain) => tool.listChain(table, chain, signal)));
    return savedOf(
      table,
      texts.map((text) => text ?? ""),
    );
  };
  const [nat, filter, mangle] = await Promise.all([textOf("nat"), textOf("filter"), textOf("mangle")]);
  const saved = { nat, filter, mangle };
  const covers = (object: KernelObject): boolean => RULES.includes(object.kind) && touched.has(chainOf(object));
  const found = [...parseSaved(saved, family, hasGuard).values()].filter(covers);
  const emptied = robbed.map(({ table, chain }): IptablesObject => ({ kind: "chain", key: `${table} ${chain}`, value: "" }));
  return { covers, objects: new Map<string, KernelObject>([...found, ...emptied].map((object) => [objectId(object), object])), isCurrent };
}

/** What reading tables takes. */
export interface TableSight extends Pick<ChainSight, "family" | "hasGuard"> {
  readonly tool: Pick<IptablesTool, "save">;
  readonly fingerprints: Pick<FingerprintWatch, "sinceNow">;
}

/** Read whole tables, as the legacy variant can't do less. @throws {ProxyError} what the tool fails with. */
export async function seeTables(
  tables: readonly TableName[],
  { tool, fingerprints, family, hasGuard }: TableSight,
  signal: AbortSignal,
): Promise<SeenPart> {
  const isCurrent = fingerprints.sinceNow();
  const texts = await Promise.all(tables.map((table) => tool.save(table, signal)));
  const saved = { nat: "", filter: "", mangle: "", ...Object.fromEntries(tables.map((table, index) => [table, texts[index] ?? ""])) };
  const heads = tables.map((table) => `${table} `);
  const covers = ({ kind, key }: KernelObject): boolean => RULES.includes(kind) && heads.some((head) => key.startsWith(head));
  return { covers, objects: new Map<string, KernelObject>(parseSaved(saved, family, hasGuard)), isCurrent };
}

/** `TABLE CHAIN` of a key. */
function chainOf({ key }: KernelObject): string {
  const end = key.indexOf(" ", key.indexOf(" ") + 1);
  return end < 0 ? key : key.slice(0, end);
}
