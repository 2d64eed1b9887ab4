import { describe, expect, it } from "vitest";
import { readIptablesTable } from "../iptables/rules/listed-rules.ts";
import { evaluateChain } from "./evaluate.ts";
import type { HookedPacket } from "./rule.ts";

const PACKET: HookedPacket = {
  family: "IPv4",
  protocol: "tcp",
  source: "203.0.113.1",
  destination: "10.1.1.1",
  sourcePort: undefined,
  destinationPort: 80,
  inDevice: "eth0",
  outDevice: "veth1",
  state: "new",
  isTranslated: true,
  isAnsweredThere: true,
  mark: 0,
  isLocal: () => false,
  isInSet: () => undefined,
};

describe("evaluateChain", () => {
  it("gives up on chains with more ways through them than can be followed, and says where", () => {
    const twice = (from: string, to: string): readonly string[] => [`-N ${from}`, `-A ${from} -j ${to}`, `-A ${from} -j ${to}`];
    const names = Array.from({ length: 30 }, (_, index) => `c${index}`);
    const chains = names.flatMap((name, index) => twice(name, `c${index + 1}`));
    const table = readIptablesTable("iptables", "filter", ["-P FORWARD ACCEPT", ...chains, "-A FORWARD -j c0"].join("\n"));
    const base = table.chains.get("FORWARD");
    if (base === undefined) throw new Error("the chain is there");
    const { is, unconfirmed } = evaluateChain(table, base, PACKET, () => undefined);
    expect([is, unconfirmed.length, unconfirmed[0]?.may]).toEqual(["pass", 1, "drop"]);
  });
});
