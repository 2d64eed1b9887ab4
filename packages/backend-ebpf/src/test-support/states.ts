import { DEFAULT_SETTINGS, NodeView, Store } from "@turnout/core";
import type { IPFamily, NodeContext, NodeSettings, ObjectKind, ServicePort } from "@turnout/core";
import { parseEbpfOptions } from "../options.ts";
import type { EbpfFacts, EbpfOptions } from "../options.ts";
import type { SkeletonParts } from "../skeleton.ts";

/** Settings of the tests: pods are 10.1.0.0/16 and fd00:1::/32. */
export const SETTINGS: NodeSettings = {
  ...DEFAULT_SETTINGS,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/32"] },
};

/** Host facts of the tests: node1's addresses. */
export const FACTS: EbpfFacts = {
  addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] },
  hostNamespace: "1",
  optedOut: [],
  cgroup: "7",
  hasPackets: true,
  devices: [
    {
      index: 2,
      name: "eth0",
      isNamed: false,
      isWayOut: true,
      addresses: ["172.18.0.1", "fd00:18::1"],
      destinations: ["172.18.0.0/24", "fd00:18::/64"],
    },
    { index: 3, name: "cni0", isNamed: false, isWayOut: false, addresses: ["10.1.1.1"], destinations: ["10.1.1.0/24", "fd00:1:1::/64"] },
    { index: 4, name: "storage", isNamed: true, isWayOut: false, addresses: ["192.0.2.1"], destinations: ["192.0.2.0/24"] },
  ],
};

/** What the skeleton of the family has that keeps nothing for both; the folders are of the tests. */
export const PARTS: SkeletonParts = {
  isKeeper: false,
  programs: { sockets: "v1-00/sockets-00", packets: "v1-00/packets-00" },
  isNamedAlone: false,
};

/** Options of the tests: none. */
export const OPTIONS: EbpfOptions = parseEbpfOptions({});

/** The node of the tests. */
export const NODE: RawObject = {
  metadata: { name: "node1" },
  spec: { podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] },
  status: {
    addresses: [
      { type: "InternalIP", address: "172.18.0.1" },
      { type: "InternalIP", address: "fd00:18::1" },
    ],
  },
};

/** An API object as it comes. */
export type RawObject = Readonly<Record<string, unknown>> & {
  readonly metadata: Readonly<Record<string, unknown>> & { readonly namespace?: string; readonly name: string };
};

/** A Service to be, with everything optional. */
export interface ServiceFixture {
  readonly name: string;
  readonly number: number;
  readonly protocol?: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly loadBalancerIPs?: readonly string[];
  /** How many endpoints are on this node, and on another. */
  readonly local?: number;
  readonly remote?: number;
}

/** The API objects of a fixture; of kinds that a store keeps by name. */
export function objectsOf(fixture: ServiceFixture): readonly (readonly [ObjectKind, RawObject])[] {
  const { name, number, protocol = "TCP", spec = {}, loadBalancerIPs = [], local = 0, remote = 0 } = fixture;
  const metadata = { namespace: "shop", name };
  const service = {
    metadata,
    spec: {
      clusterIP: `10.96.${number >> 8}.${number & 255}`,
      clusterIPs: [`10.96.${number >> 8}.${number & 255}`, `fd00:96::${number}`],
      ipFamilies: ["IPv4", "IPv6"],
      ports: [{ name: "main", port: 80, protocol, ...(spec["nodePort"] === undefined ? {} : { nodePort: spec["nodePort"] }) }],
      ...spec,
    },
    status: { loadBalancer: { ingress: loadBalancerIPs.map((ip) => ({ ip })) } },
  };
  const slice = (family: IPFamily): RawObject => ({
    metadata: { namespace: "shop", name: `${name}-${family.toLowerCase()}`, labels: { "kubernetes.io/service-name": name } },
    addressType: family,
    ports: [{ name: "main", port: 8080, protocol }],
    endpoints: [
      ...Array.from({ length: local }, (_, index) => ({ addresses: [endpointAddress(family, number * 10 + index)], nodeName: "node1" })),
      ...Array.from({ length: remote }, (_, index) => ({
        addresses: [endpointAddress(family, number * 10 + 5 + index)],
        nodeName: "node2",
      })),
    ],
  });
  return [
    ["Service", service],
    ["EndpointSlice", slice("IPv4")],
    ["EndpointSlice", slice("IPv6")],
  ];
}

/** Of the n-th endpoint: 10.1.1.n and fd00:1:1::n; from 256 and 10,000 on further up. */
function endpointAddress(family: IPFamily, n: number): string {
  if (family === "IPv4") return `10.1.${1 + (n >> 8)}.${n & 255}`;
  return n < 10_000 ? `fd00:1:1::${n}` : `fd00:1:1::${Math.floor(n / 10_000)}:${n % 10_000}`;
}

/** The rows and context that a set of fixtures comes to, in one family. */
export function stateOf(
  fixtures: readonly ServiceFixture[],
  family: IPFamily,
  settings: NodeSettings = SETTINGS,
): { readonly rows: ReadonlyMap<string, ServicePort>; readonly node: NodeContext } {
  const store = new Store();
  store.upsert("Node", NODE);
  for (const fixture of fixtures) for (const [kind, object] of objectsOf(fixture)) store.upsert(kind, object);
  for (const kind of ["Node", "ServiceCIDR", "Service", "EndpointSlice"] as const) store.markSynced(kind);
  const view = new NodeView(store, { nodeName: "node1", family, settings });
  const changes = view.pull();
  if (changes?.node === undefined) throw new Error("a synced store gives a full change set");
  return { rows: new Map(view.rows), node: changes.node };
}

/** One service of each treatment there is. */
export const SHOWCASE: readonly ServiceFixture[] = [
  { name: "plain", number: 1, local: 1, remote: 2 },
  { name: "internal-local", number: 2, local: 1, remote: 2, spec: { internalTrafficPolicy: "Local" } },
  { name: "nowhere", number: 3 },
  { name: "elsewhere", number: 4, remote: 2, spec: { internalTrafficPolicy: "Local" } },
  { name: "node-port", number: 5, local: 1, remote: 1, spec: { type: "NodePort", nodePort: 30005 } },
  {
    name: "balanced",
    number: 6,
    local: 2,
    remote: 1,
    spec: { type: "LoadBalancer", externalTrafficPolicy: "Local", loadBalancerSourceRanges: ["203.0.113.0/24", "198.51.100.7/32"] },
    loadBalancerIPs: ["198.51.100.6"],
  },
  { name: "sticky", number: 7, local: 1, remote: 1, spec: { sessionAffinity: "ClientIP", type: "NodePort", nodePort: 30007 } },
  { name: "dns", number: 8, protocol: "UDP", remote: 2, spec: { externalIPs: ["198.51.100.8"] } },
];
