import type { IPFamily } from "@turnout/core/backend";
import { SET_NAME_MAX } from "@turnout/host/ipset/text";

/**
 * Name a set in one family: IPv6 has `KUBE-6-` in the place of `KUBE-`, and what is longer than the kernel takes is cut.
 * @source kube-proxy pkg/proxy/ipvs/ipset.go NewIPSet
 */
export function setName(base: SetBase, family: IPFamily): string {
  return (family === "IPv4" ? base : base.replace("-", "-6-")).slice(0, SET_NAME_MAX);
}

/** The sets by their names in IPv4. Those of kube-proxy come first, with its names; what it has no word for is ours. */
export const SETS = {
  /** Endpoints as `ip,port,ip`: who sends to such a one and is it himself needs masquerade (hairpin). */
  "KUBE-LOOP-BACK": "hash:ip,port,ip",
  /** Cluster IPs that have a virtual server. */
  "KUBE-CLUSTER-IP": "hash:ip,port",
  /** External IPs of Services with the Cluster policy. */
  "KUBE-EXTERNAL-IP": "hash:ip,port",
  /** External IPs of Services with the Local policy. */
  "KUBE-EXTERNAL-IP-LOCAL": "hash:ip,port",
  /** Every load-balancer IP. */
  "KUBE-LOAD-BALANCER": "hash:ip,port",
  /** Load-balancer IPs of Services with the Local policy. */
  "KUBE-LOAD-BALANCER-LOCAL": "hash:ip,port",
  /** Load-balancer IPs that only some sources may use. */
  "KUBE-LOAD-BALANCER-FW": "hash:ip,port",
  /** Who may use them. */
  "KUBE-LOAD-BALANCER-SOURCE-CIDR": "hash:ip,port,net",
  /** Load-balancer IPs as sources of the host's own packets, where the node is among them. */
  "KUBE-LOAD-BALANCER-SOURCE-IP": "hash:ip,port,ip",
  "KUBE-NODE-PORT-TCP": "bitmap:port",
  "KUBE-NODE-PORT-LOCAL-TCP": "bitmap:port",
  "KUBE-NODE-PORT-UDP": "bitmap:port",
  "KUBE-NODE-PORT-LOCAL-UDP": "bitmap:port",
  /** A bitmap of ports knows no SCTP. */
  "KUBE-NODE-PORT-SCTP-HASH": "hash:ip,port",
  "KUBE-NODE-PORT-LOCAL-SCTP-HASH": "hash:ip,port",
  /** Health check node ports, which the daemon answers on. */
  "KUBE-HEALTH-CHECK-NODE-PORT": "bitmap:port",
  /** Addresses on the dummy device: nothing of the host's own may answer there. */
  "KUBE-IPVS-IPS": "hash:ip",
  /** Whose new connections are dropped, whoever sends: a Local policy and no endpoint here. */
  "TURNOUT-DROP": "hash:ip,port",
  /** What only pods and the host get through: the Local policy of external traffic and no endpoint here. */
  "TURNOUT-NO-LOCAL": "hash:ip,port",
  /** The Local policy of external traffic: pods, the host and all others are three cases. */
  "TURNOUT-LOCAL": "hash:ip,port",
  /** External and load-balancer IPs that are the host's own addresses: only node ports have virtual servers there. */
  "TURNOUT-OWN": "hash:ip,port",
  /** The virtual servers that packets are translated to; nobody gets there by himself. */
  "TURNOUT-INTERNAL": "hash:ip,port",
} as const;

/** Name of a set in IPv4. */
export type SetBase = keyof typeof SETS;

/** All of them. */
export const SET_BASES: readonly SetBase[] = Object.keys(SETS) as readonly SetBase[];

/** The dummy device that service addresses are on, as kube-proxy calls it. */
export const DEVICE = "kube-ipvs0";
