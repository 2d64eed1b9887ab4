import { describe, expect, it } from "vitest";
import { attribute, host32, zeroEnded } from "../message.ts";
import { NftEventReader } from "./nft-events.ts";
import type { NftEvent } from "./nft-events.ts";

const NFT = 10 << 8;
const [NEWRULE, DELRULE, DELELEMENTS, NEWGEN] = [NFT | 6, NFT | 8, NFT | 14, NFT | 15];
/** What a rule does, or elements are: as much as of a rule of iptables with a comment. */
const CONTENT = attribute(4, Buffer.alloc(500));
const IPV4 = Buffer.from([2, 0, 0, 0]);

/** Hear a commit of messages, each with a table and a chain or set. */
function heard(messages: Iterable<readonly [type: number, name: string]>): NftEvent | undefined {
  const reader = new NftEventReader();
  for (const [type, name] of messages) {
    const payload = Buffer.concat([IPV4, attribute(1, zeroEnded("nat")), attribute(2, zeroEnded(name)), CONTENT]);
    reader.receive({ type, flags: 0, seq: 0, payload });
  }
  return reader.receive({ type: NEWGEN, flags: 0, seq: 0, payload: Buffer.concat([Buffer.alloc(4), attribute(1, host32(7))]) });
}

function changesOf(event: NftEvent | undefined): readonly string[] | undefined {
  if (event?.kind !== "commit") throw new Error("no commit was heard");
  return event.changes()?.map(({ table, verb, kind, name }) => `${verb} ${kind} ${table} ${name}`);
}

describe("a commit of very many rules", () => {
  it("is told, however large the rules are: in a row once for each chain", () => {
    const rules = Array.from({ length: 200_000 }, (_, index) => [DELRULE, `chain-${Math.floor(index / 50_000)}`] as const);
    const reported = changesOf(heard([...rules, [NEWRULE, "chain-3"], [DELRULE, "chain-3"]]));
    expect(reported).toEqual([
      "deleted rule ip nat chain-0",
      "deleted rule ip nat chain-1",
      "deleted rule ip nat chain-2",
      "deleted rule ip nat chain-3",
      "made rule ip nat chain-3",
      "deleted rule ip nat chain-3",
    ]);
  });

  it("is too much to tell where it is of elements, whose keys have to be kept", () => {
    expect(changesOf(heard(Array.from({ length: 50_000 }, () => [DELELEMENTS, "services"] as const)))).toBeUndefined();
  });
});
