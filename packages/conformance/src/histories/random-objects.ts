import type { DetectLocal, IPFamily, NodeSettings } from "@turnout/core";
import { FAMILIES } from "@turnout/core";
import type { Packet } from "../oracle/packet.ts";
import { pickOne, rawNode, rawServiceCIDR } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { PROTOCOLS } from "../checks/cells.ts";
import { targetsOf } from "../runner/probe-packet.ts";
import type { PacketTarget } from "../runner/probe-packet.ts";
import type { ObjectRef } from "../runner/scenario.ts";
import { addressesOf, SERVICE_PORT, service, servicePorts, sliceRefs, slices } from "../runner/short.ts";
import type { EndpointOn } from "../runner/short.ts";
import { HOST_ADDRESSES, PLACES, STAGE_NODE, STAGE_OBJECTS, STAGE_RANGES, STAGE_SETTINGS } from "../runner/stage.ts";

type Random = () => number;

/** One thing that happens to the API objects. */
export interface ClusterEvent {
  readonly say: string;
  readonly put?: readonly RawObject[];
  readonly remove?: readonly ObjectRef[];
  /** The host's addresses besides those of the stage. */
  readonly hostAddresses?: Readonly<Record<IPFamily, readonly string[]>>;
}

/** Few, so that they meet each other all the time. */
const SERVICES = 6;
const SECOND_PORT = 81;
const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
/** What the host has besides its own at times: an address to spare, and one that a Service has too. */
const MORE_ADDRESSES: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["192.0.2.1", addressesOf(2, "loadBalancerIP").IPv4],
  IPv6: ["fd00:192::1", addressesOf(2, "loadBalancerIP").IPv6],
};
const RANGES: readonly (readonly string[])[] = [
  ["203.0.113.1/32", "fd00:203::1/128"],
  ["203.0.113.0/24", "172.18.0.0/16", "fd00:18::/64"],
  ["10.1.0.0/16", "10.1.1.0/24", "fd00:1::/32"],
  ["0.0.0.0/0", "::/0"],
  ["nonsense"],
];
const BAD_SPECS: readonly RawObject[] = [
  { ports: "none" },
  { clusterIPs: ["bogus"], clusterIP: "bogus" },
  { ports: [{ port: 0 }] },
  { type: "Portal" },
];

/** Who serves. A client outside that is an endpoint too, and asks for itself by this node, is nobody's case. */
export const SERVERS: readonly string[] = PLACES.filter(({ kind }) => kind !== "client").map(({ name }) => name);

const HERE_AND_OUTSIDE = PLACES.filter(({ node }) => node === undefined || node === STAGE_NODE);

/** Choose how a node is configured, mostly as on the stage. */
export function randomSettings(random: Random): NodeSettings {
  const modes: readonly DetectLocal[] = [
    STAGE_SETTINGS.detectLocal,
    STAGE_SETTINGS.detectLocal,
    { mode: "NodeCIDR" },
    { mode: "BridgeInterface", bridgeInterface: "veth1" },
    { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" },
    { mode: "ClusterCIDR", clusterCIDRs: [STAGE_RANGES.pods.IPv4] },
  ];
  return {
    masqueradeAll: random() < 0.15,
    masqueradeBit: pickOne([14, 14, 0, 31], random),
    detectLocal: pickOne(modes, random),
    nodePortAddresses: pickOne([["primary"], ["primary"], ["all"], ["192.0.2.0/24", "primary"]], random),
  };
}

/** Think up one change: mostly of slices, as in life; `servers` are their endpoints. */
export function randomEvent(random: Random, servers: readonly string[] = SERVERS): ClusterEvent {
  const number = 1 + Math.floor(random() * SERVICES);
  const name = `s${number}`;
  const chance = random();
  if (chance < 0.5) return { say: `slices of ${name}`, put: randomSlices(name, servers, random) };
  if (chance < 0.82) return { say: `Service ${name}`, put: [randomService(name, number, random)] };
  if (chance < 0.88) return { say: `no Service ${name}`, remove: [{ kind: "Service", namespace: "kit", name }] };
  if (chance < 0.93) return { say: `no slices of ${name}`, remove: sliceRefs(name, suffix(random)) };
  if (chance < 0.97) return { say: "the node", put: [randomNode(random)] };
  if (chance < 0.98) return { say: "no node", remove: [{ kind: "Node", namespace: "", name: STAGE_NODE }] };
  if (chance < 0.99) return randomRanges(random);
  return { say: "the host's addresses", hostAddresses: someAddresses(random) };
}

/** Think up a packet: mostly to what these objects have, sometimes to what others would. */
export function randomPacket(random: Random, family: IPFamily, objects: readonly RawObject[] = []): Packet {
  const from = pickOne(PLACES, random);
  const nodeAddresses = [...HOST_ADDRESSES[family].slice(1), ...MORE_ADDRESSES[family]];
  const services = objects.filter(({ kind }) => kind === "Service");
  const known = services.length === 0 || random() < 0.15 ? [] : targetsOf([pickOne(services, random)], family, nodeAddresses);
  const any = known.length === 0 ? anyTarget(random, family, nodeAddresses) : pickOne(known, random);
  // Whatever else the other node's pods ask for, their own node's proxy has its hands on first.
  const isElsewhere = from.node !== undefined && from.node !== STAGE_NODE;
  const { source, link } = isElsewhere && !nodeAddresses.includes(any.address) ? anyoneButThem(random, family) : sourceOf(from, family);
  const isOwn = random() < 0.05 && services.length > 0;
  return {
    family,
    protocol: any.protocol,
    source: isOwn ? addressesOf(1 + Math.floor(random() * SERVICES), "loadBalancerIP")[family] : source,
    destination: any.address,
    port: any.port,
    link,
  };
}

function sourceOf({ addresses, link }: (typeof PLACES)[number], family: IPFamily): Pick<Packet, "source" | "link"> {
  return { source: addresses[family], link };
}

function anyoneButThem(random: Random, family: IPFamily): Pick<Packet, "source" | "link"> {
  return sourceOf(pickOne(HERE_AND_OUTSIDE, random), family);
}

function anyTarget(random: Random, family: IPFamily, nodeAddresses: readonly string[]): PacketTarget {
  const number = 1 + Math.floor(random() * (SERVICES + 1));
  const way = pickOne(["clusterIP", "clusterIP", "nodePort", "externalIP", "loadBalancerIP"] as const, random);
  const protocol = pickOne(PROTOCOLS, random);
  if (way === "nodePort") return { address: pickOne(nodeAddresses, random), port: 30_000 + number, protocol };
  return { address: addressesOf(number, way)[family], port: random() < 0.15 ? SECOND_PORT : SERVICE_PORT, protocol };
}

function suffix(random: Random): string {
  return random() < 0.7 ? "1" : "2";
}

function someAddresses(random: Random): Readonly<Record<IPFamily, readonly string[]>> {
  const some = (family: IPFamily): readonly string[] => MORE_ADDRESSES[family].filter(() => random() < 0.5);
  return { IPv4: some("IPv4"), IPv6: some("IPv6") };
}

function randomNode(random: Random): RawObject {
  const { addresses } = PLACES[0] ?? { addresses: { IPv4: "", IPv6: "" } };
  return rawNode(STAGE_NODE, {
    ...(random() < 0.2 ? {} : { zone: pickOne(["zone-a", "zone-b"], random) }),
    addresses: random() < 0.8 ? [addresses.IPv4, addresses.IPv6] : [addresses.IPv4],
    podCIDRs: random() < 0.8 ? ["10.1.1.0/24", "fd00:1:1::/64"] : [],
  });
}

function randomRanges(random: Random): ClusterEvent {
  if (random() < 0.4) return { say: "no service ranges", remove: [{ kind: "ServiceCIDR", namespace: "", name: "kubernetes" }] };
  const ranges = STAGE_OBJECTS.filter(({ kind }) => kind === "ServiceCIDR");
  return { say: "service ranges", put: random() < 0.7 ? ranges : [rawServiceCIDR("kubernetes", [STAGE_RANGES.services.IPv6])] };
}

function randomService(name: string, number: number, random: Random): RawObject {
  const ways = WAYS.filter(() => random() < 0.4);
  const other = random() < 0.1 ? 1 + Math.floor(random() * SERVICES) : number;
  const created = `20${20 + Math.floor(random() * 5)}-01-01T00:00:00Z`;
  const labels = random() < 0.02 ? { "service.kubernetes.io/service-proxy-name": "another" } : undefined;
  const spec: RawObject = random() < 0.03 ? pickOne(BAD_SPECS, random) : randomSpec(number, random);
  return service(name, {
    number: other,
    ways,
    created,
    spec,
    ...(labels === undefined ? {} : { labels }),
    ...(random() < 0.1 ? { ipMode: "Proxy" as const } : {}),
  });
}

function randomSpec(number: number, random: Random): RawObject {
  const local = (field: string, chance: number): RawObject => (random() < chance ? { [field]: "Local" } : {});
  const neighbour = 1 + (number % SERVICES);
  const shared = FAMILIES.flatMap((family) => [
    addressesOf(number, "externalIP")[family],
    addressesOf(neighbour, pickOne(["externalIP", "loadBalancerIP"], random))[family],
  ]);
  return {
    ...local("internalTrafficPolicy", 0.25),
    ...local("externalTrafficPolicy", 0.35),
    ...(random() < 0.2
      ? { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 1 + Math.floor(random() * 10) } } }
      : {}),
    ...(random() < 0.2 ? { loadBalancerSourceRanges: pickOne(RANGES, random) } : {}),
    ...(random() < 0.2 ? { externalIPs: shared } : {}),
    ...(random() < 0.05 ? { externalIPs: FAMILIES.map((family) => addressesOf(neighbour, "clusterIP")[family]) } : {}),
    ...(random() < 0.04 ? { type: "ExternalName" } : {}),
    ...(random() < 0.04 ? { clusterIP: "None", clusterIPs: ["None"] } : {}),
    ...(random() < 0.1 ? { ipFamilies: [pickOne(FAMILIES, random)] } : {}),
    ...(random() < 0.2 ? { ports: randomPorts(number, random) } : {}),
  };
}

function randomPorts(number: number, random: Random): readonly RawObject[] {
  const node = random() < 0.5 ? { nodePort: 30_000 + number } : {};
  return servicePorts(
    { name: "a", port: random() < 0.5 ? SERVICE_PORT : SECOND_PORT, protocols: PROTOCOLS.filter(() => random() < 0.7), ...node },
    { name: "b", port: SECOND_PORT, protocols: PROTOCOLS.filter(() => random() < 0.3) },
  );
}

function randomSlices(name: string, servers: readonly string[], random: Random): readonly RawObject[] {
  const count = pickOne([0, 1, 1, 2, 2, 3, 4, 6], random);
  const hints = pickOne(["none", "none", "zones", "nodes", "mixed"] as const, random);
  const endpoints = Array.from({ length: count }, () => randomEndpoint(hints, pickOne(servers, random), random));
  const ports =
    random() < 0.7
      ? {}
      : {
          ports: PROTOCOLS.flatMap((protocol) =>
            ["", "a-", "b-"].map((start) => ({ name: `${start}${protocol.toLowerCase()}`, protocol, port: 8080 })),
          ),
        };
  const made = slices(name, endpoints, suffix(random), ports);
  return random() < 0.85 ? made : [pickOne(made, random)];
}

function randomEndpoint(hints: "none" | "zones" | "nodes" | "mixed", on: string, random: Random): EndpointOn {
  const state = random();
  const hinted = hints === "mixed" ? random() < 0.7 : true;
  return {
    on,
    ...(state < 0.7 ? {} : state < 0.9 ? { ready: false, serving: random() < 0.7, terminating: random() < 0.8 } : { terminating: true }),
    ...(hints !== "none" && hints !== "nodes" && hinted ? { zones: [pickOne(["zone-a", "zone-b"], random)] } : {}),
    ...(hints !== "none" && hints !== "zones" && hinted ? { nodes: [pickOne(["node1", "node2"], random)] } : {}),
  };
}
