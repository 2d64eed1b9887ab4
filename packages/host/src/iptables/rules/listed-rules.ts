import type { IPFamily } from "@turnout/core";
import type { ExternalChain, ExternalRule, ExternalTable } from "../../rules/rule.ts";
import { clipped } from "../../rules/values.ts";
import type { IptablesRule } from "./rule.ts";
import { readRule } from "./rule-reader.ts";
import { rawWords, unquoted } from "./words.ts";

/** Where the kernel calls each table's own chains in, as iptables does. @source linux netfilter_ipv4.h NF_IP_PRI_* */
const PRIORITIES: Readonly<Record<string, number>> = { raw: -300, mangle: -150, nat: -100, filter: 0, security: 50 };
const NAT_AFTER = 100;
const HOOKS: ReadonlySet<string> = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);

/** A chain as it was listed. */
export interface ListedChain {
  /** What happens to packets that no rule decides; undefined: other chains call it. */
  readonly policy: "ACCEPT" | "DROP" | undefined;
  /** As they are printed, without `-A CHAIN`. */
  readonly rules: readonly string[];
}

/** Take apart by chain what `iptables-save` or `iptables -S` printed of one table. Rules of chains that aren't `wanted` are left out. Pure. */
export function readListing(text: string, isWanted: (chain: string) => boolean = () => true): ReadonlyMap<string, ListedChain> {
  const chains = new Map<string, ListedChain & { readonly rules: string[] }>();
  for (const line of text.split("\n")) {
    const [, declared, policy] = /^(?::|-N |-P )(\S+)(?: (ACCEPT|DROP))?/.exec(line) ?? [];
    if (declared !== undefined) chains.set(declared, { policy: policy as ListedChain["policy"], rules: [] });
    const [, chain = "", rule = ""] = /^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$/.exec(line) ?? [];
    if (chain !== "" && isWanted(chain)) chains.get(chain)?.rules.push(rule);
  }
  return chains;
}

/** Read what `iptables-save` or `iptables -S` printed of one table. What isn't known of a rule can't be judged. Never throws. */
export function readIptablesTable(tool: IptablesToolName, table: string, text: string): ExternalTable {
  return iptablesTable(tool, table, readListing(text));
}

/** As {@link readIptablesTable}, of chains that were listed. */
export function iptablesTable(tool: IptablesToolName, table: string, listed: ReadonlyMap<string, ListedChain>): ExternalTable {
  const family = tool.startsWith("ip6") ? "IPv6" : "IPv4";
  const ruleOf = (chain: string, rule: string): ExternalRule => {
    const { tests, actions } = readListedRule(rule, family);
    const text = `${chain} ${rule}`.trim();
    return { text: clipped(`-A ${text}`), deletion: `${tool} -t ${table} -D ${text}`, tests, actions };
  };
  const chains = Array.from(listed, ([name, { policy, rules }]): [string, ExternalChain] => [
    name,
    { name, ...hookOf(table, name, policy), rules: rules.map((rule) => ruleOf(name, rule)) },
  ]);
  return { name: `${tool} table ${table}`, tool, place: table, chains: new Map(chains) };
}

/** Read a rule as a tool printed it, without its chain. What isn't known of it can't be judged. Never throws. */
export function readListedRule(rule: string, family: IPFamily): IptablesRule {
  return readRule(rawWords(rule).map(unquoted), { family, isStrict: false });
}

type IptablesToolName = Exclude<ExternalTable["tool"], "nft">;

/** Where the kernel calls a chain in. Pure. */
export function hookOf(table: string, chain: string, policy: string | undefined): Pick<ExternalChain, "hook"> {
  if (!HOOKS.has(chain)) return {};
  const isAfter = table === "nat" && (chain === "POSTROUTING" || chain === "INPUT");
  const priority = isAfter ? NAT_AFTER : (PRIORITIES[table] ?? 0);
  return { hook: { at: chain.toLowerCase(), priority, type: table, policy: policy === "DROP" ? "drop" : "accept" } };
}
