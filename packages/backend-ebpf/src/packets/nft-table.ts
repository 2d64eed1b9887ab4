import type { NftTableChain } from "@turnout/host";
import { ct, match, meta, printHook, printRule } from "@turnout/host/nft-statement";
import type { NftCommand, NftHook, NftRuleStatement } from "@turnout/host/nft-statement";
import type { TableObject } from "../objects.ts";

/** The table of nft that the packet half needs, in the family `inet`. */
export const NFT_TABLE = "turnout-ebpf";

/** The mark that packets.bpf.c gives to a packet that is refused, instead of whatever mark it had. No other packet has it, and nobody sees it but this table. */
export const REFUSED_MARK = 0x7475_726e;

/** A chain, and its rules. */
interface Chain {
  readonly name: string;
  readonly hook: NftHook;
  readonly rules: readonly (readonly NftRuleStatement[])[];
}

/**
 * `refuse` answers what programs have marked, as soon as it is put together from its fragments. `nat` has no rules: that there is a chain
 * of this type makes the kernel rewrite packets by what conntrack knows of their flows. It rewrites nothing before conntrack sees packets, and it sees
 * them only where a rule asks for something that it knows: so there is `watch`.
 */
const CHAINS: readonly Chain[] = [
  {
    name: "refuse",
    hook: { type: "filter", hook: "prerouting", prio: -300 },
    rules: [[match(meta("mark"), REFUSED_MARK), { reject: { type: "icmpx", expr: "port-unreachable" } }]],
  },
  { name: "nat", hook: { type: "nat", hook: "postrouting", prio: 100 }, rules: [] },
  {
    name: "watch",
    hook: { type: "filter", hook: "postrouting", prio: 0 },
    rules: [[match(ct("status"), "dnat", "in"), { counter: null }]],
  },
];

/** The table as it is wanted: without it the programs serve nothing. */
export const TABLE_OBJECT: TableObject = {
  kind: "table",
  key: `inet ${NFT_TABLE}`,
  value: CHAINS.flatMap(({ name, hook, rules }) => linesOf(name, printHook(hook), rules.map(printRule))),
};

/**
 * Say how the table is made anew, as one transaction of nft. Pure.
 *
 * Shape: each rule's comment is the rule as it was written: in the kernel's listing it is told again in another form.
 * Edges: replacing it is no single step for packets, so it is written only where it differs.
 */
export function renderNftTable(): readonly NftCommand[] {
  const table = { family: "inet", name: NFT_TABLE } as const;
  const place = { family: "inet", table: NFT_TABLE } as const;
  return [
    { add: { table } },
    { delete: { table } },
    { add: { table } },
    ...CHAINS.flatMap(({ name, hook, rules }): readonly NftCommand[] => [
      { add: { chain: { ...place, name, ...hook, policy: "accept" } } },
      ...rules.map((expr): NftCommand => ({ add: { rule: { ...place, chain: name, expr, comment: printRule(expr) } } })),
    ]),
  ];
}

/** Make an object of the table's chains, as they were read. Pure. */
export function readNftTable(chains: Iterable<readonly [name: string, chain: NftTableChain]>): TableObject {
  const value = [...chains].flatMap(([name, { hook = "no hook", isDropping, comments }]) =>
    linesOf(name, isDropping ? `${hook} and drops` : hook, comments),
  );
  return { ...TABLE_OBJECT, value };
}

function linesOf(name: string, hook: string, rules: readonly string[]): readonly string[] {
  return [`${name}: ${hook}`, ...rules.map((rule) => `${name} ${rule}`)];
}
