import type { IPFamily } from "@turnout/core";
import { hookOf } from "@turnout/host/iptables";
import type { IptablesRule, IptablesVariant } from "@turnout/host/iptables";
import type { ExternalChain, ExternalRule } from "@turnout/host/rules";
import { BUILTINS, TABLES } from "./table-names.ts";
import type { TableName } from "./table-names.ts";

/** Packets and bytes, as restored: the fake doesn't count. */
export interface Counters {
  readonly packets: number;
  readonly bytes: number;
}

/** Nothing counted. */
export const ZERO: Counters = { packets: 0, bytes: 0 };

/** A rule in a chain. */
export interface Rule extends IptablesRule, Pick<ExternalRule, "deletion"> {
  readonly counters: Counters;
}

/** A chain; never changed, replaced instead. */
export interface Chain extends ExternalChain {
  /** Undefined for a chain that somebody made. */
  readonly policy: "ACCEPT" | "DROP" | undefined;
  readonly counters: Counters;
  readonly rules: readonly Rule[];
}

/** The chains of one table, built-in ones first. */
export type Chains = ReadonlyMap<string, Chain>;

/** All rules of one variant in one family. */
export interface RuleSet {
  readonly variant: IptablesVariant;
  readonly family: IPFamily;
  /** Tables that exist: legacy in order of first use, nft those that were ever changed. */
  readonly tables: Map<TableName, Chains>;
}

/** Tell whether a word names a table. */
export function isTableName(word: string): word is TableName {
  return (TABLES as readonly string[]).includes(word);
}

/** Make a table as it is when nobody has touched it. */
export function newTable(name: TableName): Chains {
  return new Map(BUILTINS[name].map((hook) => [hook, builtinChain(name, hook)]));
}

/** Make a built-in chain as it is when nobody has touched it. */
export function builtinChain(table: TableName, name: string): Chain {
  return { name, ...hookOf(table, name, "ACCEPT"), policy: "ACCEPT", counters: ZERO, rules: [] };
}

/** List the chains of a table as they are printed: built-in ones, then the others in byte order. */
export function sortedChains(chains: Chains): readonly Chain[] {
  const all = [...chains.values()];
  const others = all.filter(({ policy }) => policy === undefined);
  return [...all.filter(({ policy }) => policy !== undefined), ...others.sort((a, b) => (a.name < b.name ? -1 : 1))];
}

/** Count the rules that jump or go to a chain. */
export function referencesTo(chains: Chains, name: string): number {
  let count = 0;
  for (const { rules } of chains.values()) for (const rule of rules) if (rule.chain === name) count++;
  return count;
}
