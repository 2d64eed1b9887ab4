import { MARKER_CHAIN } from "@turnout/host/iptables/text";
import type { Jump, TableName } from "@turnout/host/iptables/text";

/** Chains whose rules belong to many: dispatch rules of rows go in and out one by one, at the head; the tail is the skeleton's. */
export const SHARED_CHAINS: Readonly<Record<TableName, readonly string[]>> = {
  filter: ["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"],
  nat: ["KUBE-SERVICES", "KUBE-NODEPORTS"],
  mangle: [],
};

/** An empty chain in each table, whose absence says that somebody flushed everything. */
export const CANARY = "KUBE-PROXY-CANARY";

/** Chains that are always there and rewritten as a whole. */
export const FIXED_CHAINS: Readonly<Record<TableName, readonly string[]>> = {
  filter: ["KUBE-FORWARD", CANARY],
  nat: ["KUBE-POSTROUTING", "KUBE-MARK-MASQ", MARKER_CHAIN, CANARY],
  mangle: [CANARY],
};

/** Prefixes of the chains of one row. Ours are all in nat; what has such a name elsewhere is nobody's and goes. */
export const ROW_CHAIN_PREFIXES: readonly string[] = ["KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-FW-", "KUBE-SEP-"];

/** How our chains' names begin: a chain jumps only to chains that come before it here. */
export const CHAIN_ORDER: readonly string[] = [
  "KUBE-SEP-",
  "KUBE-SVL-",
  "KUBE-SVC-",
  "KUBE-EXT-",
  "KUBE-FW-",
  "KUBE-NODEPORTS",
  "KUBE-SERVICES",
];

/** Chain of the guard against packets from outside to loopback addresses: kubelet's too, so it is made where it lacks and never removed. */
export const GUARD_CHAIN = "KUBE-FIREWALL";

/** The parameter that lets node ports answer on 127.0.0.1. */
export const ROUTE_LOCALNET = "net.ipv4.conf.all.route_localnet";

function jump(table: TableName, from: string, to: string, comment: string, match: string = ""): Jump {
  return { table, from, to, text: `${match}-m comment --comment "${comment}" -j ${to}` };
}

const NEW = "-m conntrack --ctstate NEW ";

/**
 * The jumps in the order in which they are put at the head, so that the last one of a chain comes first.
 * @source kube-proxy pkg/proxy/iptables/proxier.go iptablesJumpChains
 */
export const JUMPS: readonly Jump[] = [
  jump("filter", "INPUT", "KUBE-EXTERNAL-SERVICES", "kubernetes externally-visible service portals", NEW),
  jump("filter", "FORWARD", "KUBE-EXTERNAL-SERVICES", "kubernetes externally-visible service portals", NEW),
  jump("filter", "INPUT", "KUBE-NODEPORTS", "kubernetes health check service ports"),
  jump("filter", "FORWARD", "KUBE-SERVICES", "kubernetes service portals", NEW),
  jump("filter", "OUTPUT", "KUBE-SERVICES", "kubernetes service portals", NEW),
  jump("filter", "FORWARD", "KUBE-FORWARD", "kubernetes forwarding rules"),
  jump("filter", "INPUT", "KUBE-PROXY-FIREWALL", "kubernetes load balancer firewall", NEW),
  jump("filter", "OUTPUT", "KUBE-PROXY-FIREWALL", "kubernetes load balancer firewall", NEW),
  jump("filter", "FORWARD", "KUBE-PROXY-FIREWALL", "kubernetes load balancer firewall", NEW),
  jump("nat", "OUTPUT", "KUBE-SERVICES", "kubernetes service portals"),
  jump("nat", "PREROUTING", "KUBE-SERVICES", "kubernetes service portals"),
  jump("nat", "POSTROUTING", "KUBE-POSTROUTING", "kubernetes postrouting rules"),
];

/** The guard: packets to loopback addresses from elsewhere are dropped, word for word as kubelet has it. */
export const GUARD_RULE = `! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`;

/** Chains that jump to the guard. */
export const GUARD_JUMPS: readonly string[] = ["INPUT", "OUTPUT"];

/** Tell whether a chain is one of ours that is rewritten as a whole. */
export function isOwnChain(table: TableName, chain: string): boolean {
  return FIXED_CHAINS[table].includes(chain) || ROW_CHAIN_PREFIXES.some((prefix) => chain.startsWith(prefix));
}
