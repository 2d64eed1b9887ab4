import type { IptablesTable } from "./listed-iptables.ts";
import type { ExternalChain as ListedChain } from "./listed-nft.ts";
import { iptablesTable } from "@turnout/host/iptables";
import { readNftTable } from "@turnout/host/nft";
import type { ExternalRule, ExternalTable } from "@turnout/host/rules";

/** Stands for rules that were not listed: nobody knows whom they fit, and what they accept. */
const NOT_LISTED: ExternalRule = { text: "", deletion: "", tests: [() => undefined], actions: [{ does: "accept" }] };

/** Read the rules of one table of nft that were listed chain by chain. Pure. */
export function tableOfNft(family: string, name: string, chains: readonly ListedChain[]): ExternalTable {
  const entries = chains.flatMap(({ name: chain, base, rules }) => [
    {
      chain: { name: chain, ...(base === undefined ? {} : { hook: base.hook, prio: base.priority, type: base.type, policy: base.policy }) },
    },
    ...rules.map(({ expr, handle }) => ({ rule: { chain, expr, handle } })),
  ]);
  const texts = new Map(
    chains.flatMap(({ rules }) => rules.flatMap(({ handle, text }) => (text === undefined ? [] : [[String(handle), text] as const]))),
  );
  return withCuts(readNftTable(family, name, { nftables: entries }, { texts }), chains);
}

/** Read the rules of one table of iptables that were listed chain by chain. Pure. */
export function tableOfIptables({ variant, family, table, chains }: IptablesTable): ExternalTable {
  const plain = family === "IPv4" ? "iptables" : "ip6tables";
  const listed = new Map(chains.map((chain) => [chain.name, chain]));
  return withCuts(iptablesTable(variant === "nft" ? plain : `${plain}-legacy`, table, listed), chains);
}

function withCuts(table: ExternalTable, listed: readonly { readonly name: string; readonly isCut: boolean }[]): ExternalTable {
  const cut = new Set(listed.filter(({ isCut }) => isCut).map(({ name }) => name));
  if (cut.size === 0) return table;
  const chains = Array.from(
    table.chains,
    ([name, chain]) => [name, cut.has(name) ? { ...chain, rules: [...chain.rules, NOT_LISTED] } : chain] as const,
  );
  return { ...table, chains: new Map(chains) };
}
