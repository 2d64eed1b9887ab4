import { readListing } from "@turnout/host/nft";
import { nftStatementText } from "@turnout/host/nft-statement";
import { describe, expect, it } from "vitest";
import { readNftTable, renderNftTable, TABLE_OBJECT } from "./nft-table.ts";

/** As nft 1.0.6 lists a table, but for what nobody reads. */
function listed(chains: readonly object[], rules: readonly object[]): string {
  return JSON.stringify({
    nftables: [{ table: { name: "turnout-ebpf" } }, ...chains.map((chain) => ({ chain })), ...rules.map((rule) => ({ rule }))],
  });
}

const CHAINS = [
  { name: "refuse", type: "filter", hook: "prerouting", prio: -300, policy: "accept" },
  { name: "nat", type: "nat", hook: "postrouting", prio: 100, policy: "accept" },
  { name: "watch", type: "filter", hook: "postrouting", prio: 0, policy: "accept" },
];
const RULES = [
  { chain: "refuse", comment: "meta mark 0x7475726e reject with icmpx port-unreachable" },
  { chain: "watch", comment: "ct status dnat counter" },
];

describe("the table of nft", () => {
  it("is this", () =>
    expect(`${renderNftTable().map(nftStatementText).join("\n")}\n`).toMatchFileSnapshot("../../test/golden/nft-table.txt"));

  it("is known by its chains, their hooks and the rules' comments", () => {
    expect(readNftTable(readListing(listed(CHAINS, RULES)))).toEqual(TABLE_OBJECT);
    const others = [
      listed(CHAINS.slice(1), RULES.slice(1)),
      listed(CHAINS, RULES.slice(1)),
      listed(CHAINS, [...RULES, { chain: "nat" }]),
      listed([...CHAINS, { name: "more" }], RULES),
      listed(
        CHAINS.map((chain) => ({ ...chain, prio: 1 })),
        RULES,
      ),
      listed(
        CHAINS.map((chain) => ({ ...chain, policy: "drop" })),
        RULES,
      ),
    ];
    for (const text of others) expect(readNftTable(readListing(text)).value).not.toEqual(TABLE_OBJECT.value);
  });
});
