import type { CountName } from "@turnout/core/backend";
import { PROTOCOLS } from "./objects.ts";

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

/** Destinations that are counted at a time in each set; a packet for one more is decided as all others and not counted. */
const DESTINATIONS_MAX = 65_536;

/** Statements that make the sets, for one nft family. What no packet asked for in a day is forgotten. */
export function countSetStatements(family: "ip" | "ip6"): readonly string[] {
  const type = `${family === "ip" ? "ipv4_addr" : "ipv6_addr"} . inet_proto . inet_service`;
  return Object.keys(COUNT_SETS).map(
    (set) => `add set ${family} turnout ${set} { type ${type}; size ${DESTINATIONS_MAX}; flags dynamic,timeout; timeout 1d; }`,
  );
}

/** Rule text that counts a packet for its destination. A rule by itself: in a full set it ends here, and the next rule decides. */
export function countRule(set: CountSet, ip: string): string {
  return `update @${set} { ${ip} daddr . meta l4proto . th dport counter }`;
}

/**
 * Rules that count the bytes of a translated flow in either direction, for the destination that its client asked for. The protocols are named,
 * because nft knows a type of `proto-dst` only behind them.
 */
export function byteRules(ip: string): readonly string[] {
  const asked = `ct original ${ip} daddr . meta l4proto . ct original proto-dst`;
  const rule = (direction: "original" | "reply", set: CountSet): string =>
    `ct direction ${direction} meta l4proto { ${PROTOCOLS.join(", ")} } update @${set} { ${asked} counter }`;
  return [rule("original", "counted-bytes-in"), rule("reply", "counted-bytes-out")];
}
