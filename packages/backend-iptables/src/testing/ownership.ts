import type { RuleOwnership } from "@turnout/fakes/iptables";

/** Chains of kube-proxy's with names of their own. */
const STATIC_CHAINS: ReadonlySet<string> = new Set([
  "KUBE-SERVICES",
  "KUBE-EXTERNAL-SERVICES",
  "KUBE-NODEPORTS",
  "KUBE-POSTROUTING",
  "KUBE-MARK-MASQ",
  "KUBE-FORWARD",
  "KUBE-PROXY-FIREWALL",
  "KUBE-PROXY-CANARY",
]);
const DYNAMIC_CHAIN = /^KUBE-(?:SVC|SVL|EXT|FW|SEP)-/;

/** Tell whether a chain is the backend's, by its name; KUBE-FIREWALL is kubelet's, whoever made it. */
export function isOwnChain(name: string): boolean {
  return STATIC_CHAINS.has(name) || DYNAMIC_CHAIN.test(name);
}

/** Chains in which each service port has rules of its own, in whatever order they came. */
const SHARED_CHAINS: ReadonlySet<string> = new Set(["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"]);

/** What in the tables is this backend's. */
export const OWNERSHIP: RuleOwnership = {
  isOwnChain,
  isSharedChain: (_, name) => SHARED_CHAINS.has(name),
  // What leads to KUBE-NODEPORTS isn't for one port; it counts from the chain's end.
  isTail: (table, { chain }) => table === "nat" && chain === "KUBE-NODEPORTS",
};
