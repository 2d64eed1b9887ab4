import { MARKER_CHAIN } from "@turnout/host/iptables/text";
import type { IPFamily } from "@turnout/core/backend";
import type { Jump, TableName } from "@turnout/host/iptables/text";

/** The chain whose rules translate packets to the virtual server with the endpoints of this node, in and out one by one. */
export const TO_LOCAL = "TURNOUT-TO-LOCAL";
/** The same, to the one with all endpoints. */
export const TO_CLUSTER = "TURNOUT-TO-CLUSTER";

/** Chains whose rules belong to many. */
export const SHARED_CHAINS: Readonly<Record<TableName, readonly string[]>> = { filter: [], nat: [TO_LOCAL, TO_CLUSTER], mangle: [] };

/** An empty chain in each table, kube-proxy's too. The tool says by it which variant of iptables a service proxy uses here. */
export const CANARY = "KUBE-PROXY-CANARY";

/** Chains that are always there and rewritten as a whole. Those of kube-proxy in ipvs mode have its names. */
export const FIXED_CHAINS: Readonly<Record<TableName, readonly string[]>> = {
  filter: [
    "KUBE-FORWARD",
    "KUBE-NODE-PORT",
    "KUBE-PROXY-FIREWALL",
    "KUBE-SOURCE-RANGES-FIREWALL",
    "KUBE-IPVS-FILTER",
    "TURNOUT-LOCAL-ONLY",
    CANARY,
  ],
  nat: [
    "KUBE-SERVICES",
    "KUBE-POSTROUTING",
    "KUBE-NODE-PORT",
    "KUBE-LOAD-BALANCER",
    "KUBE-MARK-MASQ",
    "TURNOUT-LOCAL",
    MARKER_CHAIN,
    CANARY,
  ],
  mangle: ["KUBE-IPVS-OUT-FILTER", "KUBE-SOURCE-RANGES-FIREWALL", CANARY],
};

/** Chains that kube-proxy has in ipvs mode and we don't need: what it left is ours to remove. */
const FORMER_CHAINS: Readonly<Record<TableName, readonly string[]>> = {
  filter: ["KUBE-IPVS-OUT-FILTER"],
  nat: [],
  mangle: [],
};

/** How our chains' names begin: a chain jumps only to chains that come before it here. */
export const CHAIN_ORDER: readonly string[] = [
  "KUBE-MARK-MASQ",
  "TURNOUT-TO-",
  "TURNOUT-",
  "KUBE-SOURCE-RANGES-FIREWALL",
  "KUBE-LOAD-BALANCER",
  "KUBE-NODE-PORT",
  "KUBE-SERVICES",
];

function jump(table: TableName, from: string, to: string, comment: string): Jump {
  return { table, from, to, text: `-m comment --comment "${comment}" -j ${to}` };
}

/**
 * The jumps in the order in which they are put at the head, so that the last one of a chain comes first.
 *
 * Shape: kube-proxy's, but for the one in OUTPUT. The kernel sends the host's own packets through IPVS before the filter table sees them, so what
 * keeps the host from an address is in the mangle table.
 * @source kube-proxy pkg/proxy/ipvs/proxier.go iptablesJumpChain; Linux net/netfilter/ipvs/ip_vs_core.c ip_vs_ops4
 */
export const JUMPS: readonly Jump[] = [
  jump("nat", "OUTPUT", "KUBE-SERVICES", "kubernetes service portals"),
  jump("nat", "PREROUTING", "KUBE-SERVICES", "kubernetes service portals"),
  jump("nat", "POSTROUTING", "KUBE-POSTROUTING", "kubernetes postrouting rules"),
  jump("filter", "FORWARD", "KUBE-FORWARD", "kubernetes forwarding rules"),
  jump("filter", "INPUT", "KUBE-NODE-PORT", "kubernetes health check rules"),
  jump("filter", "INPUT", "KUBE-PROXY-FIREWALL", "kube-proxy firewall rules"),
  jump("filter", "FORWARD", "KUBE-PROXY-FIREWALL", "kube-proxy firewall rules"),
  jump("filter", "INPUT", "KUBE-IPVS-FILTER", "kubernetes ipvs access filter"),
  jump("mangle", "OUTPUT", "KUBE-IPVS-OUT-FILTER", "kubernetes ipvs access filter"),
];

/** Jumps that kube-proxy has in ipvs mode and we don't. */
export const FORMER_JUMPS: readonly Jump[] = [jump("filter", "OUTPUT", "KUBE-IPVS-OUT-FILTER", "kubernetes ipvs access filter")];

/** A kernel has this parameter once IPVS is loaded; with it connections through IPVS are in conntrack, too. */
export const IPVS_PARAMETER = "net.ipv4.vs.conntrack";

/**
 * The kernel parameters that are set, with their values.
 * @source kube-proxy pkg/proxy/ipvs/proxier.go NewProxier
 */
export function parametersOf(family: IPFamily, strictARP: boolean, losesReusedPorts: boolean): Readonly<Record<string, string>> {
  const ipvs = {
    [IPVS_PARAMETER]: "1",
    "net.ipv4.vs.expire_nodest_conn": "1",
    "net.ipv4.vs.expire_quiescent_template": "1",
    ...(losesReusedPorts ? { "net.ipv4.vs.conn_reuse_mode": "0" } : {}),
  };
  // Forwarding of IPv6 is left to whoever sets up the network: with it on, a host ignores router advertisements.
  if (family === "IPv6") return ipvs;
  const strict = strictARP ? { "net.ipv4.conf.all.arp_ignore": "1", "net.ipv4.conf.all.arp_announce": "2" } : {};
  return { ...ipvs, "net.ipv4.ip_forward": "1", ...strict };
}

/** Tell whether a chain is one of ours that is rewritten as a whole. */
export function isOwnChain(table: TableName, chain: string): boolean {
  return FIXED_CHAINS[table].includes(chain) || FORMER_CHAINS[table].includes(chain);
}
