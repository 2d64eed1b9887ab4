import { disjointCIDRs, parseCIDR } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";
import type { IPFamily } from "../model/api-objects.ts";
import { listField } from "./fields.ts";
import type { Findings, Raw } from "./fields.ts";

/** What `loadBalancerSourceRanges` says. */
export interface SourceRanges {
  /** All readable ones. */
  readonly cidrs: readonly CIDR[];
  /** What load-balancer IPs of a family without a readable range are. */
  readonly otherFamily: "open" | "open, reported" | "closed: unreadable" | "closed: strict";
}

const NONE: readonly string[] = [];
const EVENT = "FamilyWithoutSourceRanges";

/**
 * Read the source ranges of a Service; `isStrict` closes a family that has none where the other one has some.
 *
 * Edges: a zero CIDR of either family means that there is no restriction. An unreadable entry may have been the one of a family that has none now.
 * @source rules
 */
export function readSourceRanges(spec: Raw, findings: Findings, isStrict: boolean): SourceRanges {
  const given = spec["loadBalancerSourceRanges"];
  if (given !== undefined && given !== null && !Array.isArray(given)) {
    findings.add("loadBalancerSourceRanges is not a list, it is not used", given, "write a list of CIDRs");
    return { cidrs: [], otherFamily: "closed: unreadable" };
  }
  const texts = listField(spec, "loadBalancerSourceRanges");
  const cidrs: CIDR[] = [];
  for (const text of texts) {
    const cidr = typeof text === "string" ? parseCIDR(text) : undefined;
    if (cidr === undefined) findings.add("bad loadBalancerSourceRanges entry, it is skipped", text, "use CIDRs such as 10.0.0.0/8");
    else cidrs.push(cidr);
  }
  if (cidrs.length < texts.length) return { cidrs, otherFamily: "closed: unreadable" };
  if (texts.length === 0 || cidrs.some(isZero)) return { cidrs, otherFamily: "open" };
  return { cidrs, otherFamily: isStrict ? "closed: strict" : "open, reported" };
}

/** Give the ranges for a family's load-balancer IPs, and report where there are none; empty: all clients may use them. */
export function rangesOfFamily(
  { cidrs, otherFamily }: SourceRanges,
  family: IPFamily,
  loadBalancerIPs: readonly string[],
  findings: Findings,
): readonly string[] | "closed" {
  const own = cidrs.filter((cidr) => cidr.family === family);
  if (own.length > 0) return own.some(isZero) ? NONE : disjointCIDRs(own).map(({ text }) => text);
  if (otherFamily === "open") return NONE;
  const isClosed = otherFamily !== "open, reported";
  const readable = otherFamily === "closed: unreadable" ? "readable " : "";
  const kind = `no ${readable}loadBalancerSourceRanges of ${family}, these load-balancer IPs are ${isClosed ? "left out" : "open to all clients"}`;
  const hint =
    otherFamily === "closed: unreadable"
      ? "correct the ranges or remove them"
      : `add a range of ${family}, or a zero CIDR if all clients may use them${isClosed ? "" : "; --strict-source-ranges closes them"}`;
  for (const ip of loadBalancerIPs) findings.add(kind, ip, hint, EVENT);
  return isClosed ? "closed" : NONE;
}

function isZero({ text }: CIDR): boolean {
  return text.endsWith("/0");
}
