import { pickOne, rawNode, rawServiceCIDR } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import type { AllowedAddresses, CIDR, DetectLocal, IPFamily, NodeSettings, Protocol, Variants } from "@turnout/core";
import { abilitiesOf, parseCIDR } from "@turnout/core";
import type { OracleWorld } from "../oracle-world.ts";
import { CLUSTER_IPS, EXTERNAL_IPS, HOST_ADDRESSES, randomAddress } from "./random-address.ts";
import type { Random } from "./random-address.ts";
import { FIRST_SLICE, randomSlice } from "./random-slice.ts";

const SLICES = 14;
const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];
/** Ranges that hold the node. */
const NODES_RANGES: readonly unknown[] = ["172.18.0.0/16", "fd00:18::/32"];
const RANGES: readonly unknown[] = [
  "203.0.113.0/25",
  " 203.0.113.1/32 ",
  "172.18.0.0/16",
  "172.18.0.0/24",
  "fd00:203::/124",
  "fd00:18::/32",
  "fd00:18::/64",
  "10.1.1.7/24",
  "0.0.0.0/0",
  "::/0",
  "203.0.113.0",
  "x",
  5,
];
const DETECTORS: readonly DetectLocal[] = [
  { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/32", "203.0.113.0/24"] },
  { mode: "ClusterCIDR", clusterCIDRs: ["fd00:1::/32"] },
  { mode: "ClusterCIDR", clusterCIDRs: [] },
  { mode: "NodeCIDR" },
  { mode: "BridgeInterface", bridgeInterface: "veth1" },
  { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" },
];
const NODE_PORT_ADDRESSES: readonly NodeSettings["nodePortAddresses"][] = [
  undefined,
  ["primary"],
  ["localhost"],
  ["all"],
  ["172.18.0.0/16"],
  ["fd00:7::/64", "192.168.7.0/24"],
  ["fd00:7::/64", "primary"],
  ["10.9.0.0/16", "0.0.0.0/0"],
  ["10.9.0.0/16"],
  [],
];

/** What Services may have besides their cluster IPs. */
const ALLOWED: readonly (readonly string[] | undefined)[] = [
  undefined,
  [],
  ["198.51.100.0/24"],
  ["198.51.100.1/32", "fd00:198::1/128"],
  ["172.18.0.0/16", "198.51.100.2/32", "fd00:198::2/128", "10.96.0.0/16"],
];

/** Draw one world; nearly every field of every object is sometimes absent, odd or wrong. */
export function randomWorld(random: Random): OracleWorld {
  const services = [0, 1, 2, 3, 4].filter(() => random() < 0.85).map((number) => randomService(number, random));
  return {
    objects: [...randomNodes(random), ...services, ...Array.from({ length: SLICES }, (_, number) => randomSlice(number, random))],
    nodeName: "node1",
    settings: {
      masqueradeAll: random() < 0.15,
      masqueradeBit: 14,
      detectLocal: pickOne(DETECTORS, random),
      nodePortAddresses: pickOne(NODE_PORT_ADDRESSES, random),
    },
    ...(random() < 0.1 ? { bindAddress: pickOne(["192.168.7.1", "fd00:7::1"], random) } : {}),
    hostAddresses: HOST_ADDRESSES,
    nodePortAddressesDefault: pickOne([["primary"], []], random),
    capabilities: randomCapabilities(random),
    variants: randomVariants(random),
    ...(random() < 0.3 ? { allowedAddresses: randomAllowed(random) } : {}),
    ...(random() < 0.2 ? { sourceAddresses: ["198.51.100.1 80", "fd00:198::1 80"] } : {}),
  };
}

function randomAllowed(random: Random): AllowedAddresses {
  const list = (): readonly CIDR[] | undefined => pickOne(ALLOWED, random)?.flatMap((text) => parseCIDR(text) ?? []);
  return { externalIPs: list(), loadBalancerIPs: list(), strictSourceRanges: random() < 0.5, strictExternalIPs: random() < 0.5 };
}

/** Put other objects in the place of one or a few, or take them away. */
export function changedWorld(world: OracleWorld, random: Random): OracleWorld {
  const objects = [...world.objects];
  for (let changes = random() < 0.7 ? 1 : 3; changes > 0; changes--) {
    const place = Math.floor(random() * objects.length);
    const object = objects[place];
    if (object === undefined || random() < 0.25) objects.splice(place, 1);
    else if (object["kind"] === "Service") objects[place] = randomService(numberOf(object), random);
    else if (object["kind"] === "EndpointSlice") objects[place] = randomSlice(FIRST_SLICE - numberOf(object), random);
  }
  return { ...world, objects };
}

function randomNodes(random: Random): readonly RawObject[] {
  const zone = pickOne(["a", "b", undefined], random);
  const addresses = pickOne(
    [["172.18.0.1", "fd00:18::1"], ["172.018.0.1"], ["fd00:7::1", "192.168.7.1", "172.18.0.1"], ["web", "10.9.9.9"], []],
    random,
  );
  const podCIDRs = pickOne([["10.1.1.0/24", "fd00:1:1::/64"], ["10.1.1.9/24", "10.1.0.0/16"], undefined], random);
  const node = rawNode("node1", { addresses, ...(zone === undefined ? {} : { zone }), ...(podCIDRs === undefined ? {} : { podCIDRs }) });
  const other = rawNode("node2", { zone: "b", addresses: ["172.18.0.2"], podCIDRs: ["10.1.2.0/24"] });
  const cidrs = pickOne([["10.96.0.0/16", "fd00:96::/112"], ["10.96.0.7/16", "x", 3], ["fd00:96::/112"]], random);
  return [...(random() < 0.95 ? [node] : []), other, ...(random() < 0.8 ? [rawServiceCIDR("main", cidrs)] : [])];
}

function randomService(number: number, random: Random): RawObject {
  const some = <T>(chance: number, value: T): T | undefined => (random() < chance ? value : undefined);
  const families = pickOne<readonly IPFamily[]>([["IPv4", "IPv6"], ["IPv6", "IPv4"], ["IPv4"], ["IPv6"]], random);
  const clusterIPs = families.map((family) => randomAddress(CLUSTER_IPS[family], 0.04, random));
  const label = pickOne(["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"], random);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      namespace: number === 4 ? "lab" : "shop",
      name: `s${number}`,
      creationTimestamp: pickOne(["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", undefined, "soon"], random),
      labels: some(0.06, { [label]: "" }),
    },
    spec: {
      type:
        random() < 0.06
          ? pickOne(["ExternalName", "Portal"], random)
          : pickOne(["ClusterIP", "NodePort", "LoadBalancer", undefined], random),
      clusterIP: random() < 0.05 ? pickOne(["None", "", undefined, "web"], random) : clusterIPs[0],
      clusterIPs: random() < 0.85 ? clusterIPs : pickOne([undefined, [], ["10.96.0.3"]], random),
      ipFamilies: random() < 0.8 ? families : undefined,
      ports:
        random() < 0.97
          ? [0, 1, 2, 3].filter(() => random() < 0.7).map(() => randomServicePort(random))
          : pickOne([undefined, "80", {}], random),
      externalIPs: some(
        0.5,
        [0, 1].map(() => randomAddress([...EXTERNAL_IPS.IPv4, ...EXTERNAL_IPS.IPv6], 0.1, random)),
      ),
      internalTrafficPolicy: pickOne(["Cluster", "Local", undefined, "local"], random),
      externalTrafficPolicy: pickOne(["Cluster", "Local", "Local", undefined, 3], random),
      sessionAffinity: pickOne(["None", "ClientIP", undefined, "Cookie"], random),
      sessionAffinityConfig: pickOne(
        [undefined, { clientIP: { timeoutSeconds: 60 } }, { clientIP: { timeoutSeconds: 0 } }, { clientIP: 7 }],
        random,
      ),
      loadBalancerSourceRanges:
        random() < 0.5
          ? undefined
          : pickOne(
              [[], "203.0.113.0/25", NODES_RANGES, NODES_RANGES, [0, 1].map(() => pickOne(RANGES, random)), [pickOne(RANGES, random)]],
              random,
            ),
    },
    status: some(0.75, {
      loadBalancer: {
        ingress: [0, 1].map(() => ({
          ip: randomAddress([...EXTERNAL_IPS.IPv4, ...EXTERNAL_IPS.IPv6], 0.1, random),
          ipMode: pickOne(["VIP", "VIP", undefined, undefined, "Proxy", "Magic"], random),
        })),
      },
    }),
  };
}

function randomServicePort(random: Random): unknown {
  return {
    name: pickOne(["web", "web", "dns", "", undefined, random() < 0.1 ? "no name!" : "dns"], random),
    protocol: pickOne([...PROTOCOLS, undefined, "UDP", random() < 0.1 ? "ICMP" : "TCP"], random),
    port: random() < 0.95 ? pickOne([80, 80, 80, 53, 53, 8080, 30_001], random) : pickOne([0, "80", 70_000, undefined], random),
    nodePort: pickOne([30_001, 30_002, undefined, 0, random() < 0.2 ? 70_000 : 30_001], random),
    targetPort: 8080,
  };
}

function randomCapabilities(random: Random): OracleWorld["capabilities"] {
  const isWhole = random() < 0.7;
  return Object.fromEntries(
    Object.keys(abilitiesOf({}).capabilities).map((name) => [name, isWhole || random() < 0.8 ? true : "not here"]),
  ) as OracleWorld["capabilities"];
}

function randomVariants(random: Random): Variants {
  return {
    undefinedClusterIPPort: pickOne(["reject", "pass"], random),
    undefinedExternalPort: pickOne(["pass", "reject"], random),
    unallocatedClusterIP: pickOne(["drop", "pass"], random),
    nodePortRejectScope: pickOne(["nodePortAddresses", "anyLocalAddress"], random),
    rejectFromHost: random() < 0.5,
    blockedWithoutEndpoints: pickOne(["drop", "reject"], random),
    affinityScope: pickOne(["row", "address"], random),
    nodePortsOnLoopback: pickOne(["IPv4", "never"], random),
    rowChanges: pickOne(["atOnce", "inParts"], random),
    // Rows say nothing of sockets, and so nothing could be compared.
    localClients: "packets",
    nodePortScope: pickOne(["settings", "settings", "all"], random),
    affinityBy: "memory",
  };
}

function numberOf(object: RawObject): number {
  const { name } = object["metadata"] as { readonly name: string };
  return Number(name.replace(/^\D+/, ""));
}
