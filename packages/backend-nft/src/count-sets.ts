import type { CountName } from "@turnout/core/backend";

/** A set that packets write into: a destination as they asked for it, and how many came to the chain that counts there. */
export type CountSet = "counted-connections" | "counted-rejects" | "counted-drops" | "counted-outside";

/** What each set counts. NAT chains see the first packet of a flow, or each one until one is accepted. */
export const COUNT_SETS: Readonly<Record<CountSet, CountName>> = {
  "counted-connections": "connections",
  "counted-rejects": "rejects",
  "counted-drops": "dropsWithoutLocal",
  "counted-outside": "dropsOutsideRanges",
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
