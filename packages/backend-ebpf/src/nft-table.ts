import type { Listing } from "@turnout/host/nft";
import type { TableObject } from "./objects.ts";

/** The table of nft that the packet half needs, in the family `inet`. */
export const NFT_TABLE = "turnout-ebpf";

/** The mark that packets.bpf.c gives to a packet that is refused, instead of whatever mark it had. No other packet has it, and nobody sees it but this table. */
export const REFUSED_MARK = 0x7475_726e;

/** A chain, and what its rules do; nft gives priorities back as numbers. */
interface Chain {
  readonly name: string;
  readonly hook: string;
  readonly rules: readonly string[];
}

/**
 * `refuse` answers what programs have marked, as soon as it is put together from its fragments. `nat` has no rules: that there is a chain
 * of this type makes the kernel rewrite packets by what conntrack knows of their flows. It rewrites nothing before conntrack sees packets, and it sees
 * them only where a rule asks for something that it knows: so there is `watch`.
 */
const CHAINS: readonly Chain[] = [
  {
    name: "refuse",
    hook: "type filter hook prerouting priority -300",
    rules: [`meta mark 0x${REFUSED_MARK.toString(16)} reject with icmpx port-unreachable`],
  },
  { name: "nat", hook: "type nat hook postrouting priority 100", rules: [] },
  { name: "watch", hook: "type filter hook postrouting priority 0", rules: ["ct status dnat counter"] },
];

/** The table as it is wanted: without it the programs serve nothing. */
export const TABLE_OBJECT: TableObject = { kind: "table", key: `inet ${NFT_TABLE}`, value: CHAINS.flatMap(linesOf) };

/**
 * Say how the table is made anew, as one transaction of nft. Pure.
 *
 * Shape: each rule's comment is the rule as it was written: in the kernel's listing it is told again in another form.
 * Edges: replacing it is no single step for packets, so it is written only where it differs.
 */
export function renderNftTable(): readonly string[] {
  const table = `inet ${NFT_TABLE}`;
  return [
    `add table ${table}`,
    `delete table ${table}`,
    `add table ${table}`,
    ...CHAINS.flatMap(({ name, hook, rules }) => [
      `add chain ${table} ${name} { ${hook}; policy accept; }`,
      ...rules.map((rule) => `add rule ${table} ${name} ${rule} comment "${rule}"`),
    ]),
  ];
}

/** Make an object of the table as it was listed. Pure. */
export function readNftTable({ chains }: Listing): TableObject {
  const value = [...chains].flatMap(([name, { hook = "no hook", isDropping, comments }]) =>
    linesOf({ name, hook: isDropping ? `${hook} and drops` : hook, rules: comments }),
  );
  return { ...TABLE_OBJECT, value };
}

function linesOf({ name, hook, rules }: Chain): readonly string[] {
  return [`${name}: ${hook}`, ...rules.map((rule) => `${name} ${rule}`)];
}
