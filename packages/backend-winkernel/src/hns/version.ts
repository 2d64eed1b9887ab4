import type { HnsVersion } from "./replies.ts";

/** What some versions of HNS can. */
export type HnsFeature = "v2" | "dsr" | "dualStack" | "sessionAffinity" | "modifyLoadBalancer";

/** From a version up to, but for, another one. */
type Range = readonly [from: HnsVersion, below: HnsVersion | undefined];

const at = (major: number, minor: number): HnsVersion => ({ major, minor });

/**
 * Ranges of versions that can; several have holes.
 *
 * Edges: 15.4 takes a modification of a load balancer and changes nothing (kubernetes/kubernetes#131466), so hcsshim's gate is not used.
 * @source hcsshim hcn/hcnglobals.go; microsoft/hnslib hcn/hcnglobals.go for ModifyLoadbalancer
 */
const RANGES: Readonly<Record<HnsFeature, readonly Range[]>> = {
  v2: [[at(9, 2), undefined]],
  dsr: [
    [at(9, 3), at(10, 0)],
    [at(10, 2), undefined],
  ],
  dualStack: [[at(11, 10), undefined]],
  sessionAffinity: [[at(12, 0), undefined]],
  modifyLoadBalancer: [[at(15, 5), undefined]],
};

/** Tell whether a version of HNS can do something. */
export function hasFeature(version: HnsVersion, feature: HnsFeature): boolean {
  return RANGES[feature].some(([from, below]) => compare(version, from) >= 0 && (below === undefined || compare(version, below) < 0));
}

function compare(a: HnsVersion, b: HnsVersion): number {
  return a.major - b.major || a.minor - b.minor;
}
