import type { IPFamily } from "@turnout/core";
import { ProxyError } from "@turnout/core";

/** One node to build. `zone` becomes its topology.kubernetes.io/zone label; `pods` is how many pod namespaces it gets. */
export interface NodeOptions {
  readonly name: string;
  readonly zone?: string;
  readonly pods: number;
}

/** What cluster to build. */
export interface ClusterShape {
  readonly nodes: readonly NodeOptions[];
  /** Default both. */
  readonly families?: readonly IPFamily[];
  /** Outside clients, reached through the fabric; default 1. */
  readonly clients?: number;
}

/** Where a namespace stands in the cluster. */
export type PlaceKind = "fabric" | "node" | "pod" | "client";

/** One namespace of the cluster: its name in it, and its addresses. */
export interface PlannedPlace {
  readonly kind: PlaceKind;
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
  /** The node a pod belongs to, and the zone and pod ranges of a node. */
  readonly node?: string;
  readonly zone?: string;
  readonly podCIDRs?: readonly string[];
}

/** Two interface ends: what `ip link add` needs. MAC addresses are chosen so that neighbours can be static. */
export interface PlannedLink {
  readonly router: string;
  readonly routerLink: string;
  readonly routerMac: string;
  readonly leaf: string;
  readonly leafMac: string;
}

/** Everything that must be done to have the cluster, as data. Keys of `commands` are place names. */
export interface ClusterPlan {
  readonly places: readonly PlannedPlace[];
  readonly links: readonly PlannedLink[];
  /** Lines for `ip -batch`, run inside each place once the links exist. */
  readonly commands: ReadonlyMap<string, readonly string[]>;
}

/** Ranges of the laboratory, the same in every cluster. */
export const RANGES: Readonly<Record<"pods" | "nodes" | "services" | "clients" | "external", Readonly<Record<IPFamily, string>>>> = {
  pods: { IPv4: "10.1.0.0/16", IPv6: "fd00:1::/32" },
  nodes: { IPv4: "172.18.0.0/24", IPv6: "fd00:18::/64" },
  services: { IPv4: "10.96.0.0/16", IPv6: "fd00:96::/112" },
  clients: { IPv4: "203.0.113.0/24", IPv6: "fd00:203::/64" },
  external: { IPv4: "198.51.100.0/24", IPv6: "fd00:198::/64" },
};

/** Name of the place that joins nodes and clients: a bridge for the nodes, a router for the rest. */
export const FABRIC = "fabric";

const FABRIC_HOST = 254;
const LEAF_GATEWAY: Readonly<Record<IPFamily, string>> = { IPv4: "169.254.1.1", IPv6: "fe80::1" };

const ADDRESSES: Readonly<Record<"pod" | "node" | "client", Record<IPFamily, (a: number, b: number) => string>>> = {
  pod: { IPv4: (node, pod) => `10.1.${node}.${pod}`, IPv6: (node, pod) => `fd00:1:${hex(node)}::${hex(pod)}` },
  node: { IPv4: (node) => `172.18.0.${node}`, IPv6: (node) => `fd00:18::${hex(node)}` },
  client: { IPv4: (client) => `203.0.113.${client}`, IPv6: (client) => `fd00:203::${hex(client)}` },
};

/**
 * Lay out a cluster: places, links, and the `ip` commands for each namespace.
 *
 * Shape: pods are `pod-<node>-<pod>` at 10.1.<node>.<pod> and fd00:1:<node>::<pod>, nodes count from 1 in the order given.
 * A leaf (pod or client) hangs on its router by a point-to-point veth pair; the router's end has no address, so masquerading picks the router's own.
 * Edges: neighbours of leaves are static, nothing waits for ARP; the external range is routed to the first node.
 * @throws {ProxyError} `invalid_object` for no nodes, more than 200 of anything, or a node name used twice.
 */
export function planCluster(shape: ClusterShape): ClusterPlan {
  const families = shape.families ?? ["IPv4", "IPv6"];
  const clients = shape.clients ?? 1;
  validate(shape, families, clients);
  const plan: MutablePlan = { families, places: [], links: [], commands: new Map() };
  addFabric(plan);
  shape.nodes.forEach((node, index) => addNode(plan, node, index + 1));
  for (let client = 1; client <= clients; client += 1) addClient(plan, client);
  for (const family of families) {
    const first = ADDRESSES.node[family](1, 0);
    commandsOf(plan, FABRIC).push(`route add ${RANGES.external[family]} via ${first}`);
  }
  return plan;
}

interface MutablePlan {
  readonly families: readonly IPFamily[];
  readonly places: PlannedPlace[];
  readonly links: PlannedLink[];
  readonly commands: Map<string, string[]>;
}

function validate(shape: ClusterShape, families: readonly IPFamily[], clients: number): void {
  const names = new Set(shape.nodes.map((node) => node.name));
  const most = Math.max(shape.nodes.length, clients, ...shape.nodes.map((node) => node.pods));
  const problem =
    shape.nodes.length === 0
      ? "a cluster needs a node"
      : families.length === 0
        ? "a cluster needs an IP family"
        : most > 200
          ? "at most 200 nodes, pods per node, and clients"
          : names.size !== shape.nodes.length
            ? "node names must differ"
            : [...names].some((name) => !/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/.test(name))
              ? "node names are short DNS labels"
              : undefined;
  if (problem !== undefined) throw new ProxyError("invalid_object", "cluster shape", { hint: problem });
}

function addFabric(plan: MutablePlan): void {
  plan.places.push({ kind: "fabric", name: FABRIC, addresses: addressesOf(plan.families, ADDRESSES.node, FABRIC_HOST, 0) });
  const commands = commandsOf(plan, FABRIC);
  commands.push("link set lo up", "link add br0 type bridge mcast_snooping 0", "link set br0 up");
  for (const family of plan.families)
    commands.push(addressCommand(family, ADDRESSES.node[family](FABRIC_HOST, 0), "br0", prefixOf(RANGES.nodes[family])));
}

function addNode(plan: MutablePlan, node: NodeOptions, number: number): void {
  const podCIDRs = plan.families.map((family) => podRange(family, number));
  plan.places.push({
    kind: "node",
    name: node.name,
    addresses: addressesOf(plan.families, ADDRESSES.node, number, 0),
    zone: node.zone ?? "",
    podCIDRs,
  });
  const link: PlannedLink = {
    router: FABRIC,
    routerLink: `node${number}`,
    routerMac: mac(0, number, 1),
    leaf: node.name,
    leafMac: mac(0, number, 2),
  };
  plan.links.push(link);
  const fabric = commandsOf(plan, FABRIC);
  fabric.push(`link set ${link.routerLink} master br0`, `link set ${link.routerLink} up`);
  const commands = commandsOf(plan, node.name);
  commands.push("link set lo up", "link set eth0 up");
  for (const family of plan.families) {
    commands.push(addressCommand(family, ADDRESSES.node[family](number, 0), "eth0", prefixOf(RANGES.nodes[family])));
    commands.push(`route add default via ${ADDRESSES.node[family](FABRIC_HOST, 0)}`);
    for (const other of plan.places) {
      if (other.kind === "node" && other.name !== node.name) addPodRoutes(plan, family, node.name, number, other);
    }
    fabric.push(`route add ${podRange(family, number)} via ${ADDRESSES.node[family](number, 0)}`);
  }
  for (let pod = 1; pod <= node.pods; pod += 1) addPod(plan, node.name, number, pod);
}

/** Each of two nodes learns the way to the other's pods. */
function addPodRoutes(plan: MutablePlan, family: IPFamily, name: string, number: number, other: PlannedPlace): void {
  const range = other.podCIDRs?.[plan.families.indexOf(family)];
  const address = other.addresses[family];
  commandsOf(plan, name).push(`route add ${range} via ${address}`);
  commandsOf(plan, other.name).push(`route add ${podRange(family, number)} via ${ADDRESSES.node[family](number, 0)}`);
}

function addPod(plan: MutablePlan, node: string, number: number, pod: number): void {
  const name = `pod-${number}-${pod}`;
  const addresses = addressesOf(plan.families, ADDRESSES.pod, number, pod);
  plan.places.push({ kind: "pod", name, node, addresses });
  addLeaf(
    plan,
    { router: node, routerLink: `veth${pod}`, routerMac: mac(1, number, pod), leaf: name, leafMac: mac(2, number, pod) },
    addresses,
  );
}

function addClient(plan: MutablePlan, client: number): void {
  const name = `client${client}`;
  const addresses = addressesOf(plan.families, ADDRESSES.client, client, 0);
  plan.places.push({ kind: "client", name, addresses });
  addLeaf(
    plan,
    { router: FABRIC, routerLink: `client${client}`, routerMac: mac(3, client, 1), leaf: name, leafMac: mac(3, client, 2) },
    addresses,
  );
}

function addLeaf(plan: MutablePlan, link: PlannedLink, addresses: PlannedPlace["addresses"]): void {
  plan.links.push(link);
  const router = commandsOf(plan, link.router);
  const leaf = commandsOf(plan, link.leaf);
  router.push(`link set ${link.routerLink} up`);
  leaf.push("link set lo up", "link set eth0 up");
  for (const family of plan.families) {
    const address = addresses[family] ?? "";
    const gateway = LEAF_GATEWAY[family];
    const host = family === "IPv4" ? 32 : 128;
    router.push(`route add ${address}/${host} dev ${link.routerLink}`);
    router.push(`neigh add ${address} lladdr ${link.leafMac} dev ${link.routerLink} nud permanent`);
    leaf.push(addressCommand(family, address, "eth0", host));
    leaf.push(`neigh add ${gateway} lladdr ${link.routerMac} dev eth0 nud permanent`);
    leaf.push(`route add default via ${gateway} dev eth0 onlink`);
  }
}

function addressesOf(
  families: readonly IPFamily[],
  make: Record<IPFamily, (a: number, b: number) => string>,
  a: number,
  b: number,
): Partial<Record<IPFamily, string>> {
  return Object.fromEntries(families.map((family) => [family, make[family](a, b)]));
}

function commandsOf(plan: MutablePlan, place: string): string[] {
  const known = plan.commands.get(place);
  if (known !== undefined) return known;
  const fresh: string[] = [];
  plan.commands.set(place, fresh);
  return fresh;
}

function podRange(family: IPFamily, node: number): string {
  return family === "IPv4" ? `10.1.${node}.0/24` : `fd00:1:${hex(node)}::/64`;
}

/** `nodad`: an IPv6 address is usable at once instead of after a second of duplicate detection. */
function addressCommand(family: IPFamily, address: string, link: string, prefixLength: number): string {
  return `address add ${address}/${prefixLength} dev ${link}${family === "IPv6" ? " nodad" : ""}`;
}

function prefixOf(range: string): number {
  return Number(range.slice(range.indexOf("/") + 1));
}

function hex(value: number): string {
  return value.toString(16);
}

/** A locally administered MAC; unique over (kind, a, b), each below 256. */
function mac(kind: number, a: number, b: number): string {
  return ["02", "54", "4c", ...[kind, a, b].map((part) => part.toString(16).padStart(2, "0"))].join(":");
}
