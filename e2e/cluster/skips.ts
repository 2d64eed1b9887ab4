/** Tests that a run leaves out. */
export interface Skip {
  /** A regular expression over the names of tests. */
  readonly match: string;
  readonly reason: string;
  /** The last day (YYYY-MM-DD) on which the entry holds: then somebody has to look again, and until then the tests run. */
  readonly until: string;
}

/** What of sig-network no run plays, with any proxy. */
export const SKIPS: readonly Skip[] = [
  {
    match: "NetworkPolicy",
    reason: "network policies are a network plugin's work, and the cluster's plugin (ptp) has none",
    until: "2027-06-30",
  },
  { match: "\\[Alpha\\]", reason: "needs alpha feature gates, which the cluster leaves off", until: "2027-06-30" },
  { match: "Ingress|Gateway", reason: "needs an ingress controller; no part of service proxying", until: "2027-06-30" },
  {
    match: "SCTP",
    reason: "opens SCTP sockets, and the kernel of the development machine has none; e2e/conformance.test.ts sends SCTP packets",
    until: "2027-03-31",
  },
  { match: "\\[Serial\\]|\\[Disruptive\\]", reason: "restarts machines or programs over SSH, or must run alone", until: "2027-03-31" },
  { match: "Internet connection|iperf2", reason: "needs a way out of the cluster, or measures the machine", until: "2027-06-30" },
  { match: "LoadBalancers|\\[Feature:LoadBalancer\\]", reason: "needs a cloud's load balancer", until: "2027-03-31" },
  { match: "\\bDNS\\b", reason: "tests CoreDNS with images that are not built here; no part of service proxying", until: "2027-03-31" },
  { match: "EndpointSliceMirroring", reason: "tests kube-controller-manager alone", until: "2027-06-30" },
  { match: "latency should not be very high", reason: "measures the machine and not its proxy", until: "2027-06-30" },
  { match: "API operations", reason: "tests the API server alone", until: "2027-06-30" },
  { match: "proxy logs on node", reason: "asks the kubelet for its logs; no part of service proxying", until: "2027-06-30" },
  {
    match: "evicted pods",
    reason: "needs a kubelet that counts what pods store, and in namespaces none does (localStorageCapacityIsolation)",
    until: "2027-03-31",
  },
];

/** Entries that hold on a day (YYYY-MM-DD), and those that no longer do. Pure. */
export function sortSkips(skips: readonly Skip[], today: string): { readonly valid: readonly Skip[]; readonly expired: readonly Skip[] } {
  return { valid: skips.filter(({ until }) => today <= until), expired: skips.filter(({ until }) => today > until) };
}
