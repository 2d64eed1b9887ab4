import type { Chain, Rule, RuleSet, TableName } from "@turnout/host/testing/iptables";
import { sortedChains } from "@turnout/host/testing/iptables";
import { isOwnChain } from "./ownership.ts";

/** Chains in which each service port has rules of its own, in whatever order they came. */
const SHARED_CHAINS: ReadonlySet<string> = new Set(["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"]);

/** Whose lines are wanted. */
export type Whose = "own" | "foreign";

/**
 * List rules in lines that two hosts with the same content share: no counters, and no order where none is kept.
 *
 * Shape: rules of one service port in a shared chain come in any order among each other; the tail, jumps that aren't to one port, stands
 * where it stands. A rule of a foreign chain is whose it leads to; ours in there are compared among each other, and so are theirs.
 */
export function linesOf({ variant, family, tables }: RuleSet, whose: Whose): readonly string[] {
  return [...tables].flatMap(([table, chains]) =>
    sortedChains(chains).flatMap((chain) => chainLines(table, chain, whose).map((line) => `${variant} ${family} ${table}: ${line}`)),
  );
}

function chainLines(table: TableName, chain: Chain, whose: Whose): readonly string[] {
  const isOwn = isOwnChain(chain.name);
  const head = `chain ${chain.name} ${chain.policy ?? ""}`;
  const heads = isOwn === (whose === "own") ? [head] : [];
  const rules = chain.entries.map(({ rule }) => rule).filter((rule) => (isOwn || isOwnRule(rule)) === (whose === "own"));
  return [...heads, ...(isOwn && SHARED_CHAINS.has(chain.name) ? sharedLines(table, chain.name, rules) : orderedLines(chain.name, rules))];
}

function isOwnRule({ chain }: Rule): boolean {
  return chain !== undefined && isOwnChain(chain);
}

function orderedLines(name: string, rules: readonly Rule[]): readonly string[] {
  return rules.map(({ text }, index) => `rule ${name} ${index}: ${text}`);
}

function sharedLines(table: TableName, name: string, rules: readonly Rule[]): readonly string[] {
  // What leads to KUBE-NODEPORTS isn't for one port; it counts from the chain's end.
  const isTail = ({ chain }: Rule): boolean => table === "nat" && chain === "KUBE-NODEPORTS";
  const tail = rules.flatMap((rule, index) => (isTail(rule) ? [`rule ${name} ${index - rules.length}: ${rule.text}`] : []));
  const others = rules.filter((rule) => !isTail(rule)).map(({ text }) => `rule ${name}: ${text}`);
  return [...others.sort(), ...tail];
}
