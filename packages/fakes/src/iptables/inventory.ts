import { sortedChains } from "./tables.ts";
import type { Chain, Rule, RuleSet } from "./tables.ts";
import type { TableName } from "./table-names.ts";

/** What in the tables is a backend's. */
export interface RuleOwnership {
  /** Tell whether a chain is the backend's, by its name. */
  isOwnChain(name: string): boolean;
  /** Tell whether each service port has rules of its own in a chain, in whatever order they came. */
  isSharedChain(table: TableName, name: string): boolean;
  /** Tell whether a rule of a shared chain stands where it stands, counted from the chain's end. */
  isTail(table: TableName, rule: Rule): boolean;
}

/** Whose lines are wanted. */
export type Whose = "own" | "foreign";

/**
 * List rules in lines that two hosts with the same content share: no counters, and no order where none is kept.
 *
 * Shape: rules of one service port in a shared chain come in any order among each other; the tail, jumps that aren't to one port, stands
 * where it stands. A rule of a foreign chain is whose it leads to; ours in there are compared among each other, and so are theirs.
 */
export function linesOf({ variant, family, tables }: RuleSet, whose: Whose, ownership: RuleOwnership): readonly string[] {
  return [...tables].flatMap(([table, chains]) =>
    sortedChains(chains).flatMap((chain) =>
      chainLines(table, chain, whose, ownership).map((line) => `${variant} ${family} ${table}: ${line}`),
    ),
  );
}

function chainLines(table: TableName, chain: Chain, whose: Whose, ownership: RuleOwnership): readonly string[] {
  const isOwn = ownership.isOwnChain(chain.name);
  const isOwnRule = (rule: Rule): boolean => rule.chain !== undefined && ownership.isOwnChain(rule.chain);
  const head = `chain ${chain.name} ${chain.policy ?? ""}`;
  const heads = isOwn === (whose === "own") ? [head] : [];
  const rules = chain.rules.filter((rule) => (isOwn || isOwnRule(rule)) === (whose === "own"));
  if (!isOwn || !ownership.isSharedChain(table, chain.name)) return [...heads, ...orderedLines(chain.name, rules)];
  return [...heads, ...sharedLines(chain.name, rules, (rule) => ownership.isTail(table, rule))];
}

function orderedLines(name: string, rules: readonly Rule[]): readonly string[] {
  return rules.map(({ text }, index) => `rule ${name} ${index}: ${text}`);
}

function sharedLines(name: string, rules: readonly Rule[], isTail: (rule: Rule) => boolean): readonly string[] {
  const tail = rules.flatMap((rule, index) => (isTail(rule) ? [`rule ${name} ${index - rules.length}: ${rule.text}`] : []));
  const others = rules.filter((rule) => !isTail(rule)).map(({ text }) => `rule ${name}: ${text}`);
  return [...others.sort(), ...tail];
}
