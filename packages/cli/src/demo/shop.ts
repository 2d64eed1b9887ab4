import type { Protocol } from "@turnout/core";
import type { PortManifest, ServiceManifest } from "@turnout/lab";

/** One server of the shop: its name, and the pod it runs in. */
export interface Replica {
  readonly name: string;
  readonly pod: string;
}

/** A Service of the shop and who stands behind it. */
export interface ShopService {
  readonly manifest: ServiceManifest;
  /** What there is to see in it, for people. */
  readonly about: string;
  /** Where the replicas listen for the service's first port. */
  readonly serverPort: number;
  readonly protocol: Protocol;
  /** Everyone who may ever serve it; all are started. */
  readonly replicas: readonly Replica[];
  /** How many of them, from the first, are endpoints at the start. */
  readonly startWith: number;
}

/** Nodes of the demo and how many pods each has. */
export const NODES: readonly { readonly name: string; readonly zone: string; readonly pods: number }[] = [
  { name: "node1", zone: "zone-a", pods: 4 },
  { name: "node2", zone: "zone-b", pods: 4 },
];

/** Namespace of all of the shop's Services. */
export const NAMESPACE = "shop";
/** The port on which the frontend also speaks HTTP, for curl; its servers listen on {@link HTTP_SERVER_PORT}. */
export const HTTP_PORT = 80;
/** Where the frontend's servers speak HTTP. */
export const HTTP_SERVER_PORT = 8080;
/** The frontend's node port. */
export const NODE_PORT = 30_080;
/** The frontend's node port for HTTP. */
export const HTTP_NODE_PORT = 30_081;

interface ShopEntry {
  readonly name: string;
  readonly number: number;
  readonly about: string;
  readonly port: number;
  readonly protocol?: Protocol;
  readonly replicas: readonly Replica[];
  readonly startWith?: number;
  readonly nodePort?: number;
  readonly morePorts?: readonly PortManifest[];
  readonly hasLoadBalancer?: boolean;
  readonly fields?: Partial<ServiceManifest>;
}

function shopService(entry: ShopEntry): ShopService {
  const { name, number, about, port, protocol = "TCP", replicas, startWith = replicas.length } = entry;
  const serverPort = 9_000 + number;
  const main: PortManifest = {
    name: "main",
    protocol,
    port,
    targetPort: serverPort,
    ...(entry.nodePort === undefined ? {} : { nodePort: entry.nodePort }),
  };
  const manifest: ServiceManifest = {
    namespace: NAMESPACE,
    name,
    clusterIPs: [`10.96.0.${number}`, `fd00:96::${number}`],
    ports: [main, ...(entry.morePorts ?? [])],
    ...(entry.hasLoadBalancer === true ? { ingress: [{ ip: `198.51.100.${number}` }, { ip: `fd00:198::${number}` }] } : {}),
    ...entry.fields,
  };
  return { manifest, about, serverPort, protocol, replicas, startWith };
}

function replica(name: string, pod: string): Replica {
  return { name, pod };
}

/** The web shop, in the order it is reported. */
export const SHOP: Readonly<Record<"frontend" | "cart" | "checkout" | "payments" | "banner" | "search" | "dns" | "metrics", ShopService>> =
  {
    frontend: shopService({
      name: "frontend",
      number: 10,
      about: "the shop's front door, open to the outside",
      port: 9_000,
      replicas: [
        replica("frontend-1", "pod-1-1"),
        replica("frontend-2", "pod-1-2"),
        replica("frontend-3", "pod-2-1"),
        replica("frontend-v2-1", "pod-2-2"),
        replica("frontend-v2-2", "pod-1-3"),
        replica("frontend-v2-3", "pod-2-3"),
      ],
      startWith: 3,
      nodePort: NODE_PORT,
      morePorts: [{ name: "http", port: HTTP_PORT, targetPort: HTTP_SERVER_PORT, nodePort: HTTP_NODE_PORT }],
      hasLoadBalancer: true,
    }),
    cart: shopService({
      name: "cart",
      number: 20,
      about: "inside only",
      port: 80,
      replicas: [replica("cart-1", "pod-1-2"), replica("cart-2", "pod-2-2")],
    }),
    checkout: shopService({
      name: "checkout",
      number: 30,
      about: "session affinity: a client keeps its server",
      port: 80,
      replicas: [replica("checkout-1", "pod-1-1"), replica("checkout-2", "pod-1-3"), replica("checkout-3", "pod-2-1")],
      fields: { affinitySeconds: 600 },
    }),
    payments: shopService({
      name: "payments",
      number: 40,
      about: "externalTrafficPolicy Local: sees its clients' own addresses",
      port: 80,
      replicas: [replica("payments-1", "pod-1-1"), replica("payments-2", "pod-2-3")],
      hasLoadBalancer: true,
      fields: { externalTrafficPolicy: "Local" },
    }),
    banner: shopService({
      name: "banner",
      number: 50,
      about: "switched back and forth between two pods",
      port: 80,
      replicas: [replica("banner-blue", "pod-1-3"), replica("banner-green", "pod-2-3")],
      startWith: 1,
    }),
    search: shopService({ name: "search", number: 60, about: "has no endpoints", port: 80, replicas: [] }),
    dns: shopService({
      name: "dns",
      number: 53,
      about: "UDP, a question a packet",
      port: 53,
      protocol: "UDP",
      replicas: [replica("dns-1", "pod-1-3"), replica("dns-2", "pod-2-1")],
    }),
    metrics: shopService({
      name: "metrics",
      number: 81,
      about: "UDP, from a client that never changes its port",
      port: 8_125,
      protocol: "UDP",
      replicas: [replica("metrics-1", "pod-1-2"), replica("metrics-2", "pod-2-2")],
    }),
  };

/** Ways a service can be reached from outside the cluster's pods. */
export type Way = "clusterIP" | "loadBalancerIP";

/** The address of a service in a family. @throws {Error} when the service lacks it: a mistake in the demo's script. */
export function addressOf(service: ShopService, way: Way, family: "IPv4" | "IPv6"): string {
  const { clusterIPs, ingress = [] } = service.manifest;
  const addresses = way === "clusterIP" ? clusterIPs : ingress.map(({ ip }) => ip);
  const found = addresses.find((address) => address.includes(":") === (family === "IPv6"));
  if (found === undefined) throw new Error(`${service.manifest.name} has no ${family} ${way}`);
  return found;
}

/** The port that is asked for: the service's first. */
export function portOf(service: ShopService): number {
  return service.manifest.ports[0]?.port ?? 0;
}
