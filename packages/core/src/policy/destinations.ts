import { cidrContains, disjointCIDRs, parseCIDR, parseIP } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";
import type { Destination, DestinationKind, NodeContext, Rule, Target } from "../model/rows.ts";
import type { Service, ServiceAddresses, ServicePortSpec } from "../model/api-objects.ts";

/** What is known of a row's pools when its rules are made. */
export interface PoolSizes {
  readonly cluster: number;
  readonly local: number;
  readonly hasUsableEndpoints: boolean;
}

/** What of the node decides rules. */
export type RuleContext = Pick<NodeContext, "addresses" | "detector" | "settings">;

// There are few lists of rules, and all destinations share them: at 10,000 Services those of cluster IPs alone would be 2 MB, and a list that is the
// same object is compared at a glance.
const TO: Readonly<Record<Target, Rule>> = {
  cluster: { from: "anyone", to: "cluster", masquerade: false },
  local: { from: "anyone", to: "local", masquerade: false },
  reject: { from: "anyone", to: "reject", masquerade: false },
  drop: { from: "anyone", to: "drop", masquerade: false },
};
const SHORT_CIRCUITS: readonly Rule[] = [{ from: "thisHost", to: "cluster", masquerade: true }];
const POD_SHORT_CIRCUITS: readonly Rule[] = [{ from: "localPod", to: "cluster", masquerade: false }, ...SHORT_CIRCUITS];
const PLAIN = forEachTarget((to) => [TO[to]]);
const MASQUERADED = forEachTarget((to) => [{ ...TO[to], masquerade: true }]);
const OFF_CLUSTER_MASQUERADED = forEachTarget((to) => [{ from: "offCluster", to, masquerade: true }, TO[to]]);
const SHORT_CIRCUITED = forEachTarget((to) => [...SHORT_CIRCUITS, TO[to]]);
const POD_SHORT_CIRCUITED = forEachTarget((to) => [...POD_SHORT_CIRCUITS, TO[to]]);
const OUTSIDE_DROPPED: Rule = { from: "outsideSourceRanges", to: "drop", masquerade: false };
const NO_RANGES: readonly string[] = [];

/**
 * List where one service port answers, each address with its policy; the only place where policies become rules.
 *
 * Shape: cluster IP, external IPs, load-balancer IPs, node port; an address that occurs twice is kept once, first kind
 * first, but a load-balancer IP before an external IP.
 * @source rules
 */
export function destinationsFor(
  service: Service,
  port: ServicePortSpec,
  addresses: ServiceAddresses,
  pools: PoolSizes,
  context: RuleContext,
): readonly Destination[] {
  const { clusterIP, externalIPs, loadBalancerIPs } = addresses;
  const external = externalRules(service.externalLocal, pools, context);
  const destinations: Destination[] = [];
  const add = (kind: DestinationKind, address: string, rules: readonly Rule[]): void =>
    void destinations.push({ kind, address, port: kind === "nodePort" ? port.nodePort : port.port, rules });
  add("clusterIP", clusterIP, clusterIPRules(service.internalLocal, pools, context));
  // It goes before others' external IPs (claims.ts), and where it is restricted, naming it twice must not open it.
  const taken = new Set([clusterIP, ...loadBalancerIPs]);
  for (const ip of externalIPs) if (!taken.has(ip)) add("externalIP", ip, external);
  const sourceRanges = loadBalancerIPs.length > 0 ? allowedSources(addresses, context.addresses) : NO_RANGES;
  const restricted = { sourceRanges, rules: [OUTSIDE_DROPPED, ...external] };
  for (const address of loadBalancerIPs) {
    if (address === clusterIP) continue;
    if (sourceRanges.length === 0) add("loadBalancerIP", address, external);
    else destinations.push({ kind: "loadBalancerIP", address, port: port.port, ...restricted });
  }
  if (port.nodePort !== 0) add("nodePort", "", external);
  return destinations;
}

/**
 * Make the rules of a cluster IP.
 * @source rules
 */
export function clusterIPRules(internalLocal: boolean, pools: PoolSizes, { detector, settings }: RuleContext): readonly Rule[] {
  const to = targetFor(internalLocal ? "local" : "cluster", pools);
  if (to === "reject" || to === "drop") return PLAIN[to];
  if (settings.masqueradeAll) return MASQUERADED[to];
  return (detector === undefined ? PLAIN : OFF_CLUSTER_MASQUERADED)[to];
}

/**
 * Make the rules of a node port, external IP or load-balancer IP (source ranges come before them).
 *
 * Edges: with the Local policy, pods and the host itself are short-circuited to the cluster pool; only traffic that is
 * really from outside is kept local, and dropped when the node has no endpoint while others have.
 * @source rules
 */
export function externalRules(externalLocal: boolean, pools: PoolSizes, { detector }: RuleContext): readonly Rule[] {
  if (!pools.hasUsableEndpoints) return PLAIN.reject;
  if (!externalLocal) return MASQUERADED[targetFor("cluster", pools)];
  return (detector === undefined ? SHORT_CIRCUITED : POD_SHORT_CIRCUITED)[targetFor("local", pools)];
}

function forEachTarget(make: (to: Target) => readonly Rule[]): Readonly<Record<Target, readonly Rule[]>> {
  return { cluster: make("cluster"), local: make("local"), reject: make("reject"), drop: make("drop") };
}

function targetFor(pool: "cluster" | "local", pools: PoolSizes): Target {
  if (pools[pool] > 0) return pool;
  return pools.hasUsableEndpoints ? "drop" : "reject";
}

/** The ranges, plus the load-balancer IPs themselves where a range holds this node: a host may use a VIP it has bound as its source. */
function allowedSources({ sourceRanges, loadBalancerIPs }: ServiceAddresses, nodeAddresses: readonly string[]): readonly string[] {
  const ranges = sourceRanges.map((text) => parseCIDR(text)).filter((cidr): cidr is CIDR => cidr !== undefined);
  const node = nodeAddresses[0] === undefined ? undefined : parseIP(nodeAddresses[0]);
  if (node === undefined || !ranges.some((cidr) => cidrContains(cidr, node))) return sourceRanges;
  const own = loadBalancerIPs.map((ip) => parseCIDR(`${ip}/${ip.includes(":") ? 128 : 32}`));
  return disjointCIDRs([...ranges, ...own.filter((cidr): cidr is CIDR => cidr !== undefined)]).map((cidr) => cidr.text);
}
