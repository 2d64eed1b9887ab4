import type { CountName } from "@turnout/core/backend";
import { concat, ct, match, meta, payload } from "@turnout/host/nft-statement";
import type { NftCommand, NftExpression, NftRuleStatement } from "@turnout/host/nft-statement";
import { TABLE } from "./names.ts";
import { PROTOCOLS } from "./objects.ts";
import type { ChainRule } from "./objects.ts";

/** A set that packets write into: a destination as the client asked for it, and what came to the chain that counts there. */
export type CountSet =
  "counted-connections" | "counted-rejects" | "counted-drops" | "counted-outside" | "counted-bytes-in" | "counted-bytes-out";

/** What each set counts. NAT chains see the first packet of a flow, or each one until one is accepted. */
export const COUNT_SETS: Readonly<Record<CountSet, { readonly count: CountName; readonly unit: "packets" | "bytes" }>> = {
  "counted-connections": { count: "connections", unit: "packets" },
  "counted-rejects": { count: "rejects", unit: "packets" },
  "counted-drops": { count: "dropsWithoutLocal", unit: "packets" },
  "counted-outside": { count: "dropsOutsideRanges", unit: "packets" },
  "counted-bytes-in": { count: "bytesIn", unit: "bytes" },
  "counted-bytes-out": { count: "bytesOut", unit: "bytes" },
};

const DAY_SECONDS = 86_400;
/** Destinations that are counted at a time in each set; a packet for one more is decided as all others and not counted. */
const DESTINATIONS_MAX = 65_536;

/** Statements that make the sets, for one nft family. What no packet asked for in a day is forgotten. */
export function countSetCommands(family: "ip" | "ip6"): readonly NftCommand[] {
  const type = [family === "ip" ? "ipv4_addr" : "ipv6_addr", "inet_proto", "inet_service"];
  const shape = { type, size: DESTINATIONS_MAX, flags: ["dynamic", "timeout"], timeout: DAY_SECONDS };
  return Object.keys(COUNT_SETS).map((name) => ({ add: { set: { family, table: TABLE, name, ...shape } } }));
}

/** A statement that counts a packet under a key. */
export function countIn(set: string, key: NftExpression): NftRuleStatement {
  return { set: { op: "update", elem: key, set: `@${set}`, stmt: [{ counter: null }] } };
}

/** The rule that counts a packet for its destination. A rule by itself: in a full set it ends here, and the next rule decides. */
export function countRule(set: CountSet, ip: string): ChainRule {
  return [countIn(set, concat(payload(ip, "daddr"), meta("l4proto"), payload("th", "dport")))];
}

/**
 * Rules that count the bytes of a translated flow in either direction, for the destination that its client asked for. The protocols are named,
 * because nft knows a type of `proto-dst` only behind them.
 */
export function byteRules(ip: string): readonly ChainRule[] {
  const asked = concat(ct(`${ip} daddr`, "original"), meta("l4proto"), ct("proto-dst", "original"));
  const rule = (direction: "original" | "reply", set: CountSet): ChainRule => [
    match(ct("direction"), direction),
    match(meta("l4proto"), { set: PROTOCOLS }),
    countIn(set, asked),
  ];
  return [rule("original", "counted-bytes-in"), rule("reply", "counted-bytes-out")];
}
