import type { ExternalChain, ExternalRule, ExternalTable } from "../../rules/rule.ts";
import { clipped } from "../../rules/values.ts";
import { readRule } from "./rule-reader.ts";
import { rawWords, unquoted } from "./words.ts";

/** Where the kernel calls each table's own chains in, as iptables does. @source linux netfilter_ipv4.h NF_IP_PRI_* */
const PRIORITIES: Readonly<Record<string, number>> = { raw: -300, mangle: -150, nat: -100, filter: 0, security: 50 };
const NAT_AFTER = 100;
const HOOKS: ReadonlySet<string> = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);

/** Read what `iptables-save` or `iptables -S` printed of one table. What isn't known of a rule can't be judged. Never throws. */
export function readIptablesTable(tool: Exclude<ExternalTable["tool"], "nft">, table: string, text: string): ExternalTable {
  const chains = new Map<string, ExternalChain & { readonly rules: ExternalRule[] }>();
  const context = { family: tool.startsWith("ip6") ? "IPv6" : "IPv4", isStrict: false } as const;
  for (const line of text.split("\n")) {
    const [, declared, policy] = /^(?::|-N |-P )(\S+)(?: (\S+))?/.exec(line) ?? [];
    if (declared !== undefined) chains.set(declared, { name: declared, ...hookOf(table, declared, policy), rules: [] });
    const [, chain, words = ""] = /^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$/.exec(line) ?? [];
    if (chain === undefined) continue;
    const { tests, actions } = readRule(rawWords(words).map(unquoted), context);
    const rule = `${chain} ${words}`.trim();
    chains.get(chain)?.rules.push({ text: clipped(`-A ${rule}`), deletion: `${tool} -t ${table} -D ${rule}`, tests, actions });
  }
  return { name: `${tool} table ${table}`, tool, place: table, chains };
}

/** Where the kernel calls a chain in. Pure. */
export function hookOf(table: string, chain: string, policy: string | undefined): Pick<ExternalChain, "hook"> {
  if (!HOOKS.has(chain)) return {};
  const isAfter = table === "nat" && (chain === "POSTROUTING" || chain === "INPUT");
  const priority = isAfter ? NAT_AFTER : (PRIORITIES[table] ?? 0);
  return { hook: { at: chain.toLowerCase(), priority, type: table, policy: policy === "DROP" ? "drop" : "accept" } };
}
