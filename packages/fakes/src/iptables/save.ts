import { ZERO, newTable, sortedChains } from "./tables.ts";
import { TABLES } from "./table-names.ts";
import type { Chain, Chains, Counters, RuleSet } from "./tables.ts";
import type { TableName } from "./table-names.ts";

/** Print tables as `iptables-save` does; undefined: all that exist. */
export function save(rules: RuleSet, hasCounters: boolean, table: TableName | undefined): string {
  const names = table === undefined ? existing(rules) : [table];
  return names.map((name) => `*${name}\n${tableText(rules.tables.get(name) ?? newTable(name), hasCounters)}COMMIT\n`).join("");
}

/** Legacy names the table that was used last first. */
function existing({ variant, tables }: RuleSet): readonly TableName[] {
  return variant === "nft" ? TABLES.filter((name) => tables.has(name)) : [...tables.keys()].toReversed();
}

function tableText(chains: Chains, hasCounters: boolean): string {
  const sorted = sortedChains(chains);
  const heads = sorted.map(({ name, policy = "-", counters }) => `:${name} ${policy} ${countersText(policy === "-" ? ZERO : counters)}\n`);
  return [...heads, ...sorted.flatMap((chain) => ruleLines(chain, hasCounters))].join("");
}

function ruleLines({ name, rules }: Chain, hasCounters: boolean): readonly string[] {
  return rules.map(({ text, counters }) => {
    const head = hasCounters ? `${countersText(counters)} ` : "";
    return `${head}-A ${name}${text === "" ? "" : ` ${text}`}\n`;
  });
}

function countersText({ packets, bytes }: Counters): string {
  return `[${packets}:${bytes}]`;
}

/** Print chains as `iptables -S` does. */
export function listRules(chains: readonly Chain[], number: number | undefined): string {
  const heads =
    number === undefined ? chains.map(({ name, policy }) => (policy === undefined ? `-N ${name}\n` : `-P ${name} ${policy}\n`)) : [];
  const rules = chains.flatMap((chain) => {
    const lines = ruleLines(chain, false);
    return number === undefined ? lines : lines.slice(number - 1, number);
  });
  return [...heads, ...rules].join("");
}
