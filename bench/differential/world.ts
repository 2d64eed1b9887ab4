import { addressesOf, service, servicePorts, slices, STAGE_NODE, STAGE_RANGES, STAGE_SETTINGS } from "@turnout/conformance";
import type { EndpointOn } from "@turnout/conformance";
import { FAMILIES } from "@turnout/core";
import type { IPFamily, NodeSettings } from "@turnout/core";
import { createRandom, pickOne } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";

/** The objects of a world without those of the stage: all of them in the first phase, then all of them after some changes. */
export interface World {
  readonly phases: readonly (readonly RawObject[])[];
}

/** What both proxies are configured with; worlds with seeds of one block share it, because a proxy has to be started for it. */
export interface Setup {
  readonly settings: NodeSettings;
  /** Of KubeProxyConfiguration. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Seeds that share a {@link Setup}. */
export const SEEDS_OF_A_SETUP = 20;

/** An address that node1 has besides its primary one, in a range that no Service uses. */
export const SPARE: Readonly<Record<IPFamily, string>> = { IPv4: "192.0.2.1", IPv6: "fd00:192::1" };
/** A load-balancer address that node1 has on a device, as cloud agents and MetalLB do. */
export const HELD_BALANCER: Readonly<Record<IPFamily, string>> = { IPv4: "198.51.100.200", IPv6: "fd00:198::c8" };
/** Every endpoint serves TCP and UDP on these. */
export const SERVER_PORTS = [8080, 8081] as const;
/** Ports of Services. A third one is used by none. */
export const SERVICE_PORTS = [80, 81] as const;
/** Services of a world are numbered from 1; their cluster IPs, addresses and node ports follow from the number. */
export const SERVICES = 6;

/** Where endpoints are: pods of both nodes, and the nodes themselves (hostNetwork). Of node2's pods one asks only: what it sends to itself is never node1's. */
const SERVERS: readonly string[] = ["pod-1-1", "pod-1-2", "pod-2-2", "pod-1-1", "pod-1-2", "pod-2-2", "node1", "node2"];
const PORT_NAMES = ["a", "b"] as const;
const KIT = "kit";

type Random = () => number;

/** Make up a configuration of both proxies. Pure. */
export function setupOf(worldSeed: number): Setup {
  const random = createRandom(Math.floor(worldSeed / SEEDS_OF_A_SETUP) + 7_919);
  const detectLocal = pickOne(
    [
      STAGE_SETTINGS.detectLocal,
      STAGE_SETTINGS.detectLocal,
      { mode: "NodeCIDR" } as const,
      { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" } as const,
    ],
    random,
  );
  const nodePortAddresses = pickOne([undefined, ["primary"], ["0.0.0.0/0", "::/0"], ["192.0.2.0/24", "fd00:192::/64"]], random);
  const masqueradeAll = random() < 0.15;
  const masquerade = { masqueradeAll, masqueradeBit: STAGE_SETTINGS.masqueradeBit, minSyncPeriod: "10ms" };
  return {
    settings: {
      masqueradeAll,
      masqueradeBit: STAGE_SETTINGS.masqueradeBit,
      detectLocal,
      nodePortAddresses,
    },
    fields: {
      detectLocalMode: detectLocal.mode,
      clusterCIDR: FAMILIES.map((family) => STAGE_RANGES.pods[family]).join(","),
      ...(detectLocal.mode === "InterfaceNamePrefix" ? { detectLocal: { interfaceNamePrefix: detectLocal.interfaceNamePrefix } } : {}),
      nodePortAddresses: nodePortAddresses ?? [],
      iptables: masquerade,
      nftables: masquerade,
    },
  };
}

/** Make up a world: objects that an API server accepts, and then some changes to them. Pure: one seed, one world. */
export function worldOf(seed: number): World {
  const random = createRandom(seed);
  const numbers = Array.from({ length: SERVICES }, (_, index) => index + 1).filter(() => random() < 0.8);
  const first = new Map(numbers.map((number) => [number, randomSet(`s${number}`, number, random)]));
  const second = new Map(first);
  for (let changes = 1 + Math.floor(random() * 4); changes > 0; changes -= 1) change(second, random);
  return { phases: [first, second].map((sets) => [...sets.values()].flat()) };
}

/** Change one Service or its slices: as in life, mostly the slices. */
function change(sets: Map<number, readonly RawObject[]>, random: Random): void {
  const number = 1 + Math.floor(random() * SERVICES);
  const now = sets.get(number) ?? [];
  const [own] = now.filter(isService);
  const chance = random();
  if (own === undefined) {
    sets.set(number, randomSet(`s${number}`, number, random));
    return;
  }
  const { name } = nameOf(own);
  if (chance < 0.65) sets.set(number, [own, ...randomSlices(name, random)]);
  else if (chance < 0.85) sets.set(number, [randomService(name, number, random), ...now.filter((object) => !isService(object))]);
  else if (chance < 0.93) sets.delete(number);
  // Another Service takes over all addresses, as when one is made anew under another name.
  else sets.set(number, [renamed(own, `t${number}`), ...(random() < 0.4 ? [] : randomSlices(`t${number}`, random))]);
}

const isService = ({ kind }: RawObject): boolean => kind === "Service";

function randomSet(name: string, number: number, random: Random): readonly RawObject[] {
  return [randomService(name, number, random), ...(random() < 0.1 ? [] : randomSlices(name, random))];
}

function renamed(object: RawObject, name: string): RawObject {
  return { ...object, metadata: { ...(object["metadata"] as RawObject), name } };
}

function randomService(name: string, number: number, random: Random): RawObject {
  const ways = (["nodePort", "externalIP", "loadBalancerIP"] as const).filter(() => random() < 0.45);
  const isBalanced = ways.includes("loadBalancerIP");
  const isLocal = random() < 0.35;
  const families: readonly IPFamily[] = random() < 0.15 ? [pickOne(FAMILIES, random)] : FAMILIES;
  const clusterIPs = families.map((family) => addressesOf(number, "clusterIP")[family]);
  const hasNodePort = ways.includes("nodePort") || (isBalanced && random() < 0.6);
  const externalIPs = ways.includes("externalIP") ? randomExternalIPs(number, isBalanced, random) : [];
  const ingress = isBalanced ? randomIngress(number, random) : [];
  const made = service(name, {
    number,
    created: `20${20 + Math.floor(random() * 5)}-01-01T00:00:00Z`,
    ...(random() < 0.02 ? { labels: { "service.kubernetes.io/service-proxy-name": "another" } } : {}),
    spec: {
      type: isBalanced ? "LoadBalancer" : hasNodePort ? "NodePort" : "ClusterIP",
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: families,
      ipFamilyPolicy: families.length === 2 ? "RequireDualStack" : "SingleStack",
      ports: randomPorts(number, hasNodePort, random),
      internalTrafficPolicy: random() < 0.2 ? "Local" : "Cluster",
      ...(externalIPs.length + ingress.length > 0 || hasNodePort ? { externalTrafficPolicy: isLocal ? "Local" : "Cluster" } : {}),
      ...(externalIPs.length === 0 ? {} : { externalIPs }),
      ...(isBalanced && random() < 0.4 ? { loadBalancerSourceRanges: pickOne(RANGES, random) } : {}),
      ...(isBalanced && isLocal ? { healthCheckNodePort: 32_000 + number } : {}),
      ...(random() < 0.2
        ? { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } }
        : { sessionAffinity: "None" }),
    },
  });
  return ingress.length === 0 ? made : { ...made, status: { loadBalancer: { ingress } } };
}

const RANGES: readonly (readonly string[])[] = [
  ["203.0.113.1/32", "fd00:203::1/128"],
  ["203.0.113.0/24"],
  ["172.18.0.0/16", "fd00:18::/64"],
  ["10.1.0.0/16", "10.1.1.0/24", "fd00:1::/32"],
  ["192.0.2.128/25", "fd00:9::/64"],
  ["0.0.0.0/0", "::/0"],
];

/** Its own, at times the neighbour's, its own load-balancer address, an address of a node, or one of the service range. */
function randomExternalIPs(number: number, isBalanced: boolean, random: Random): readonly string[] {
  const neighbour = 1 + (number % SERVICES);
  const chance = random();
  const more =
    chance < 0.2
      ? addressesOf(neighbour, "externalIP")
      : chance < 0.25
        ? addressesOf(neighbour, "loadBalancerIP")
        : chance < 0.3 && isBalanced
          ? addressesOf(number, "loadBalancerIP")
          : chance < 0.35
            ? SPARE
            : chance < 0.37
              ? { IPv4: "10.96.7.7", IPv6: "fd00:96::77" }
              : undefined;
  return [addressesOf(number, "externalIP"), more].flatMap((pair) => (pair === undefined ? [] : FAMILIES.map((family) => pair[family])));
}

function randomIngress(number: number, random: Random): readonly RawObject[] {
  const shared = random() < 0.15 ? 1 + (number % SERVICES) : number;
  const pair = random() < 0.15 ? HELD_BALANCER : addressesOf(shared, "loadBalancerIP");
  const ipMode = random() < 0.1 ? { ipMode: "Proxy" } : { ipMode: "VIP" };
  return FAMILIES.map((family) => ({ ip: pair[family], ...ipMode }));
}

function randomPorts(number: number, hasNodePort: boolean, random: Random): readonly RawObject[] {
  const isTwo = random() < 0.3;
  return PORT_NAMES.slice(0, isTwo ? 2 : 1).flatMap((name, index) => {
    const protocols = pickOne([["TCP"], ["UDP"], ["TCP", "UDP"], ["TCP", "UDP"]] as const, random);
    const nodePort = hasNodePort ? { nodePort: 30_000 + number + 10 * index } : {};
    return servicePorts({ name, port: SERVICE_PORTS[index] ?? 80, protocols, ...nodePort });
  });
}

function randomSlices(name: string, random: Random): readonly RawObject[] {
  const hints = pickOne(["none", "none", "none", "zones", "nodes", "mixed"] as const, random);
  const count = pickOne([1, 1, 1, 2, 3], random);
  return Array.from({ length: count }, (_, index) => randomSlicePair(name, `${index + 1}`, hints, random)).flat();
}

function randomSlicePair(name: string, suffix: string, hints: Hints, random: Random): readonly RawObject[] {
  const places = Array.from({ length: pickOne([0, 1, 1, 2, 2, 3], random) }, () => pickOne(SERVERS, random));
  // The API server refuses an address twice in one slice, but not in two of them.
  const isNodeUnknown = random() < 0.1;
  const endpoints = [...new Set(places)].map((on) => ({ ...randomEndpoint(on, hints, random), isNodeUnknown }));
  const ports = PORT_NAMES.flatMap((port) => {
    const number = pickOne([SERVER_PORTS[0], SERVER_PORTS[0], SERVER_PORTS[1]], random);
    return (["TCP", "UDP"] as const).map((protocol) => ({ name: `${port}-${protocol.toLowerCase()}`, protocol, port: number }));
  });
  const made = slices(name, endpoints, suffix, { ports });
  const timed = random() < 0.2 ? made.map((slice) => withTriggerTime(slice, random)) : made;
  return random() < 0.1 ? [pickOne(timed, random)] : timed;
}

function withTriggerTime(slice: RawObject, random: Random): RawObject {
  const time = `2026-01-01T00:00:${10 + Math.floor(random() * 50)}Z`;
  return {
    ...slice,
    metadata: { ...(slice["metadata"] as RawObject), annotations: { "endpoints.kubernetes.io/last-change-trigger-time": time } },
  };
}

type Hints = "none" | "zones" | "nodes" | "mixed";

function randomEndpoint(on: string, hints: Hints, random: Random): EndpointOn {
  const state = random();
  const isHinted = hints !== "mixed" || random() < 0.7;
  return {
    on,
    ...(state < 0.65 ? (random() < 0.5 ? {} : { ready: true, serving: true, terminating: false }) : randomConditions(random)),
    ...((hints === "zones" || hints === "mixed") && isHinted ? { zones: [pickOne(["zone-a", "zone-b"], random)] } : {}),
    ...((hints === "nodes" || hints === "mixed") && isHinted ? { nodes: [pickOne([STAGE_NODE, "node2"], random)] } : {}),
  };
}

function randomConditions(random: Random): Pick<EndpointOn, "ready" | "serving" | "terminating"> {
  return pickOne(
    [
      { ready: false, serving: false, terminating: false },
      { ready: false, serving: true, terminating: true },
      { ready: false, serving: false, terminating: true },
      // As the mirroring controller writes it.
      { ready: false },
      { ready: true, serving: true, terminating: true },
    ],
    random,
  );
}

/** Name the object in messages and for its removal. */
export function nameOf(object: RawObject): {
  readonly kind: "Service" | "EndpointSlice";
  readonly namespace: string;
  readonly name: string;
} {
  const { namespace = KIT, name } = object["metadata"] as { readonly namespace?: string; readonly name: string };
  return { kind: object["kind"] as "Service" | "EndpointSlice", namespace, name };
}

/** Name the Service that an object is, or is of. */
export function ownerOf(object: RawObject): string {
  const { name, labels } = object["metadata"] as { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  return labels?.["kubernetes.io/service-name"] ?? name;
}
