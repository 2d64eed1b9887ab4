import { parseIP } from "@turnout/core";
import type { DataType } from "./data-types.ts";
import type { Hook } from "./hooks.ts";
import type { UndoLog } from "./undo-log.ts";
import type { Walk } from "./walk.ts";

/** Everything there is, by family and name, e.g. `ip turnout`. */
export class Ruleset {
  readonly tables: Map<string, Table> = new Map<string, Table>();
  /** Handles of tables are counted for all. */
  lastHandle = 0;

  table(family: "ip" | "ip6", name: string): Table | undefined {
    return this.tables.get(`${family} ${name}`);
  }
}

/** A table; `lastHandle` counts for chains, sets and rules together and is not taken back. */
export interface Table {
  readonly family: "ip" | "ip6";
  readonly name: string;
  readonly handle: number;
  readonly comment: string | undefined;
  readonly chains: Map<string, Chain>;
  readonly sets: Map<string, NftSet>;
  lastHandle: number;
}

/** Where a base chain hangs. */
export interface BaseHook {
  readonly type: "filter" | "nat" | "route";
  readonly hook: Hook;
  readonly priority: number;
}

/** A chain; `uses` counts jumps and gotos to it, from rules and from elements of maps. */
export interface Chain {
  readonly name: string;
  readonly handle: number;
  readonly comment: string | undefined;
  readonly base: BaseHook | undefined;
  policy: "accept" | "drop";
  rules: readonly Rule[];
  uses: number;
}

/** What evaluating a statement comes to. */
export type StepResult =
  /** Go on with the next statement. */
  | undefined
  /** This rule doesn't match: go on with the next rule. */
  | "break"
  | VerdictValue;

/** A verdict as it is kept. */
export interface VerdictValue {
  readonly verdict: "accept" | "drop" | "continue" | "return" | "jump" | "goto" | "reject";
  readonly chain?: Chain;
}

/** What a statement demands of the base chains from which packets may come to it. */
export interface HookDemand {
  readonly hooks: readonly Hook[];
  readonly type?: "nat";
}

/** One statement of a rule, ready to run. */
export interface Statement {
  readonly json: unknown;
  /** Undefined: it shows. */
  readonly listing?: { readonly isHidden: boolean };
  /** The part of a header that is compared with a single value. */
  readonly field?: { readonly header: string; readonly protocol: string; readonly offset: number; readonly length: number };
  readonly demand?: HookDemand;
  run(walk: Walk): StepResult;
}

/** A rule; `chains` and `sets` are what it refers to. */
export interface Rule {
  readonly handle: number;
  readonly comment: string | undefined;
  /** Its words, for people. */
  readonly text: string;
  readonly statements: readonly Statement[];
  readonly chains: readonly Chain[];
  readonly sets: readonly NftSet[];
}

/** An element of a set or map. */
export interface Element {
  readonly key: string;
  /** Ends of an interval, both in it; undefined for a single value of a set without intervals. */
  readonly interval?: { readonly from: bigint; readonly to: bigint };
  readonly json: unknown;
  readonly data?: string | VerdictValue;
  readonly comment?: string;
  readonly timeoutMs?: number;
  readonly expiresAtMs?: number;
}

/** A set or map; `uses` counts the rules that refer to it. */
export interface NftSet {
  readonly name: string;
  readonly handle: number;
  readonly types: readonly DataType[];
  /** Transport protocol that `typeof` data is about, e.g. `tcp` for `tcp dport`: nat statements are held to it. */
  readonly dataProtocol: string | undefined;
  /** Undefined for a set. */
  readonly data: readonly DataType[] | "verdict" | undefined;
  readonly flags: readonly string[];
  readonly size: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly comment: string | undefined;
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

function countTarget(set: NftSet, { data }: Element, by: 1 | -1): void {
  if (typeof data !== "object" || data.chain === undefined) return;
  data.chain.uses += by;
  const count = (set.targets.get(data.chain) ?? 0) + by;
  if (count === 0) set.targets.delete(data.chain);
  else set.targets.set(data.chain, count);
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
  if (value === undefined) map.delete(name);
  else map.set(name, value);
  undo.add(() => {
    if (before === undefined) map.delete(name);
    else map.set(name, before);
  });
}

/** Find what a key meets in a set; what has timed out is not there. */
export function findElement(set: NftSet, key: string, nowMs: number): Element | undefined {
  const found = set.elements.get(key) ?? (set.flags.includes("interval") ? findInterval(set, key) : undefined);
  return found?.expiresAtMs !== undefined && found.expiresAtMs <= nowMs ? undefined : found;
}

function findInterval({ elements, types }: NftSet, key: string): Element | undefined {
  const [type] = types;
  if (type === undefined) return undefined;
  const at = numberOf(type, key);
  for (const element of elements.values()) {
    if (element.interval !== undefined && element.interval.from <= at && at <= element.interval.to) return element;
  }
  return undefined;
}

/** Tell whether two elements lead to the same. */
export function isSameData(a: Element["data"], b: Element["data"]): boolean {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  return a.verdict === b.verdict && a.chain === b.chain;
}

/** Tell whether an interval meets one that is there. */
export function overlaps(set: NftSet, { interval }: Element): boolean {
  if (interval === undefined) return false;
  for (const { interval: other } of set.elements.values()) {
    if (other !== undefined && interval.from <= other.to && other.from <= interval.to) return true;
  }
  return false;
}

/** A value as a number, for comparing; interface names have none and are 0. */
export function numberOf({ name }: Pick<DataType, "name">, value: string): bigint {
  if (name === "ifname") return 0n;
  return name === "ipv4_addr" || name === "ipv6_addr" ? (parseIP(value)?.value ?? 0n) : BigInt(value);
}
