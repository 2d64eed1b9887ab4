import { stagePeer } from "@turnout/conformance";
import { match, meta, payload, setMark } from "@turnout/host/nft-statement";
import type { NftChainSpec, NftRuleStatement, NftStatement } from "@turnout/host/nft-statement";
import { EXTERNAL_BIT } from "@turnout/fakes/nft";

/** The mark bit of a backend whose settings name none. */
const DEFAULT_BIT = 0x4000;

/**
 * What is on the host before the backend comes: other programs' tables, some with names much like ours.
 *
 * Shape: another program sets a mark bit of its own before addresses are translated; what happens to it is looked at beyond nft's hooks, see
 * `tracePacket`. Another rule rewrites the source of some packets that the backend has marked for that: the mark has to be cleared all the same. Nothing
 * of it stops a packet.
 */
export const EXTERNAL_RULESET: readonly NftStatement[] = (["ip", "ip6"] as const).flatMap((family): readonly NftStatement[] => {
  const pod = stagePeer("pod-1-2").addresses[family === "ip" ? "IPv4" : "IPv6"];
  const address = family === "ip" ? "192.0.2.1" : "2001:db8::1";
  const table = "somebody";
  const chain = (name: string, type: string, hook: string, prio: number): NftStatement => ({
    add: { chain: { family, table, name, type, hook, prio, policy: "accept" } satisfies NftChainSpec },
  });
  const rule = (name: string, expr: readonly NftRuleStatement[], comment?: string): NftStatement => ({
    add: { rule: { family, table, chain: name, expr, ...(comment === undefined ? {} : { comment }) } },
  });
  const masquerade: NftRuleStatement = { masquerade: null };
  const other = "turnout-of-somebody";
  return [
    { add: { table: { family, name: table } } },
    { add: { set: { family, table, name: "services", type: family === "ip" ? "ipv4_addr" : "ipv6_addr" } } },
    { verb: "add", family, table, set: "services", parts: ["address"], elements: [{ key: address, value: "", comment: "" }] },
    chain("guard", "filter", "input", 0),
    rule("guard", [match(payload(family, "saddr"), "@services"), { drop: null }], "not ours"),
    chain("watch", "filter", "forward", -10),
    rule("watch", [{ counter: null }, { accept: null }]),
    chain("translate", "nat", "postrouting", 50),
    rule("translate", [match(payload(family, "daddr"), address), masquerade]),
    rule("translate", [match(payload(family, "daddr"), pod), match(meta("mark"), EXTERNAL_BIT | DEFAULT_BIT), masquerade]),
    ...["prerouting", "output"].flatMap((hook) => [
      chain(`mark-${hook}`, "filter", hook, -150),
      rule(`mark-${hook}`, [setMark({ "|": [meta("mark"), EXTERNAL_BIT] })]),
    ]),
    { add: { table: { family, name: other } } },
    { add: { chain: { family, table: other, name: "dispatch" } } },
    { add: { chain: { family, table: other, name: "layout-2" } } },
  ];
});
