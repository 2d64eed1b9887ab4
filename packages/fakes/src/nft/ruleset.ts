import type { NamedSets } from "@turnout/host/nft";
import type { NftRuleStatement } from "@turnout/host/nft-statement";
import type { ExternalChain, ExternalRule, ExternalTable } from "@turnout/host/rules";
import { valueJson } from "./types.ts";
import type { UndoLog } from "./undo-log.ts";

/** Everything there is, by family and name, e.g. `ip turnout`. */
export class Ruleset {
  readonly tables: Map<string, Table> = new Map<string, Table>();
  /** Handles of tables are counted for all. */
  lastHandle = 0;
}

/** A table; `lastHandle` counts for chains, sets and rules together and is not taken back. */
export interface Table extends ExternalTable {
  readonly family: "ip" | "ip6";
  readonly handle: number;
  readonly chains: Map<string, Chain>;
  readonly sets: Map<string, NftSet>;
  lastHandle: number;
}

/** Where the kernel calls a base chain in. */
export type BaseHook = Omit<NonNullable<ExternalChain["hook"]>, "policy"> & { policy: "accept" | "drop" };

/** A chain; `uses` counts jumps and gotos to it, from rules and from elements of maps. */
export interface Chain {
  readonly name: string;
  readonly handle: number;
  readonly hook?: BaseHook;
  rules: readonly Rule[];
  uses: number;
}

/** A rule; `chains` and `sets` are what it refers to, `words` its statements' names. */
export interface Rule extends ExternalRule {
  readonly handle: number;
  readonly comment: string | undefined;
  readonly expr: readonly NftRuleStatement[];
  readonly chains: readonly Chain[];
  readonly sets: readonly NftSet[];
}

/** An element of a set or map. */
export interface Element {
  readonly key: string;
  /** In nft's words; "" in a set. */
  readonly value: string;
  /** Where its verdict leads. */
  readonly chain?: Chain;
  readonly comment: string;
  readonly timeoutMs?: number;
  readonly expiresAtMs?: number;
}

/** A set or map; `uses` counts the rules that refer to it. */
export interface NftSet {
  readonly name: string;
  readonly handle: number;
  readonly types: readonly string[];
  /** Undefined for a set. */
  readonly data: readonly string[] | "verdict" | undefined;
  /** The transport protocol that `typeof` data is about: translations by this map are held to it. */
  readonly protocol: string | undefined;
  readonly flags: readonly string[];
  /** A set without one gets it with the first rule that writes into it. */
  size: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly elements: Map<string, Element>;
  /** Chains that elements lead to, and how many do. */
  readonly targets: Map<Chain, number>;
  uses: number;
}

/** Put an element in, for the time being; what was there under its key goes. */
export function putElement(set: NftSet, element: Element, undo: UndoLog): void {
  const before = set.elements.get(element.key);
  if (before !== undefined) dropElement(set, before, undo);
  set.elements.set(element.key, element);
  countTarget(set, element, 1);
  undo.add(() => {
    set.elements.delete(element.key);
    countTarget(set, element, -1);
  });
}

/** Take an element out, for the time being. */
export function dropElement(set: NftSet, element: Element, undo: UndoLog): void {
  set.elements.delete(element.key);
  countTarget(set, element, -1);
  undo.add(() => {
    set.elements.set(element.key, element);
    countTarget(set, element, 1);
  });
}

function countTarget(set: NftSet, { chain }: Element, by: 1 | -1): void {
  if (chain === undefined) return;
  chain.uses += by;
  const count = (set.targets.get(chain) ?? 0) + by;
  if (count === 0) set.targets.delete(chain);
  else set.targets.set(chain, count);
}

/** Replace the rules of a chain, for the time being. */
export function putRules(chain: Chain, rules: readonly Rule[], undo: UndoLog): void {
  const before = chain.rules;
  const swap = (from: readonly Rule[], to: readonly Rule[]): void => {
    chain.rules = to;
    const [kept, left] = [new Set(to), new Set(from)];
    for (const rule of from) if (!kept.has(rule)) countUses(rule, -1);
    for (const rule of to) if (!left.has(rule)) countUses(rule, 1);
  };
  swap(before, rules);
  undo.add(() => swap(rules, before));
}

function countUses({ chains, sets }: Rule, by: 1 | -1): void {
  for (const chain of chains) chain.uses += by;
  for (const set of sets) set.uses += by;
}

/** Put something under a name, or take what is there away (undefined), for the time being. */
export function putNamed<V>(map: Map<string, V>, name: string, value: V | undefined, undo: UndoLog): void {
  const before = map.get(name);
  const put = (one: V | undefined): void => {
    if (one === undefined) map.delete(name);
    else map.set(name, one);
  };
  put(value);
  undo.add(() => put(before));
}

/** The element under a key; one that has timed out is not there. */
export function findElement({ elements }: NftSet, key: string, nowMs: number): Element | undefined {
  const found = elements.get(key);
  return found?.expiresAtMs !== undefined && found.expiresAtMs <= nowMs ? undefined : found;
}

/** The sets of a table, as rules look into them. */
export function namedSetsOf({ sets }: Table, nowMs: () => number): NamedSets {
  return {
    get(name) {
      const set = sets.get(name);
      if (set === undefined) return undefined;
      return {
        find(value) {
          const found = findElement(set, [value].flat().join(" . "), nowMs());
          return found === undefined ? undefined : { data: dataJson(set, found) };
        },
        all: () => [...set.elements.values()].map((element) => dataJson(set, element)),
      };
    },
  };
}

/** What an element leads to, as `nft -j` prints it; undefined in a set. */
export function dataJson({ data }: NftSet, { value }: Element): unknown {
  if (data === undefined) return undefined;
  if (data !== "verdict") return valueJson(data, value);
  const [word = "", target] = value.split(" ");
  return { [word]: target === undefined ? null : { target } };
}
