import type { RuleOwnership } from "@turnout/fakes/iptables";

/** Chains that are this backend's, by their names. */
const OWN_CHAINS: ReadonlySet<string> = new Set([
  "KUBE-SERVICES",
  "KUBE-POSTROUTING",
  "KUBE-MARK-MASQ",
  "KUBE-LOAD-BALANCER",
  "KUBE-NODE-PORT",
  "KUBE-FORWARD",
  "KUBE-PROXY-FIREWALL",
  "KUBE-SOURCE-RANGES-FIREWALL",
  "KUBE-IPVS-FILTER",
  "KUBE-IPVS-OUT-FILTER",
  "KUBE-PROXY-CANARY",
  "KUBE-SVC-TURNOUT",
  "TURNOUT-LOCAL",
  "TURNOUT-TO-LOCAL",
  "TURNOUT-TO-CLUSTER",
  "TURNOUT-LOCAL-ONLY",
]);

/** Tell whether a chain is the backend's, by its name. */
export function isOwnChain(name: string): boolean {
  return OWN_CHAINS.has(name);
}

/** Tell whether a set is the backend's, by its name. */
export function isOwnSet(name: string): boolean {
  return (
    /^TURNOUT-(?:6-)?(?:DROP|NO-LOCAL|LOCAL|OWN|INTERNAL)$/.test(name) ||
    /^KUBE-(?:6-)?(?:LOOP-BACK|CLUSTER-IP|EXTERNAL-IP|LOAD-BALANCER|NODE-PORT|HEALTH-CHECK-NODE-PORT|IPVS-IPS)/.test(name)
  );
}

/** What in the tables is this backend's. */
export const OWNERSHIP: RuleOwnership = {
  isOwnChain,
  isSharedChain: (_, name) => name.startsWith("TURNOUT-TO-"),
  isTail: () => false,
};
