import type { NftTableChain } from "@turnout/host";
import { nftStatementText } from "@turnout/host/nft-statement";
import { describe, expect, it } from "vitest";
import { readNftTable, renderNftTable, TABLE_OBJECT } from "./nft-table.ts";

const REFUSE = {
  hook: "type filter hook prerouting priority -300",
  isDropping: false,
  comments: ["meta mark 0x7475726e reject with icmpx port-unreachable"],
};
const NAT = { hook: "type nat hook postrouting priority 100", isDropping: false, comments: [] };
const WATCH = { hook: "type filter hook postrouting priority 0", isDropping: false, comments: ["ct status dnat counter"] };

describe("the table of nft", () => {
  it("is this", () =>
    expect(`${renderNftTable().map(nftStatementText).join("\n")}\n`).toMatchFileSnapshot("../../test/golden/nft-table.txt"));

  it("is known by its chains, their hooks and the rules' comments", () => {
    const valueOf = (chains: Readonly<Record<string, NftTableChain>>): unknown => readNftTable(Object.entries(chains)).value;
    expect(readNftTable(Object.entries({ refuse: REFUSE, nat: NAT, watch: WATCH }))).toEqual(TABLE_OBJECT);
    const others = [
      { nat: NAT, watch: WATCH },
      { refuse: { ...REFUSE, comments: [] }, nat: NAT, watch: WATCH },
      { refuse: REFUSE, nat: { ...NAT, comments: [""] }, watch: WATCH },
      { refuse: REFUSE, nat: NAT, watch: WATCH, more: { hook: undefined, isDropping: false, comments: [] } },
      { refuse: REFUSE, nat: { ...NAT, hook: "type nat hook postrouting priority 1" }, watch: WATCH },
      { refuse: REFUSE, nat: NAT, watch: { ...WATCH, isDropping: true } },
    ];
    for (const chains of others) expect(valueOf(chains)).not.toEqual(TABLE_OBJECT.value);
  });
});
