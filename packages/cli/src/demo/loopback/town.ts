/** A server of the demo: a process of its own on a loopback port, in the place of a pod. */
export interface Replica {
  readonly name: string;
  /** The address its EndpointSlice says. */
  readonly ip: string;
}

/** A Service of the demo. */
export interface TownService {
  readonly name: "cart" | "checkout" | "search" | "dns";
  readonly about: string;
  readonly clusterIP: string;
  readonly port: number;
  readonly protocol: "TCP" | "UDP";
  readonly affinitySeconds?: number;
}

/** An endpoint as its slice has it. */
export interface TownEndpoint {
  readonly replica: Replica;
  readonly isLeaving?: boolean;
}

/** The port of every pod. */
export const POD_PORT = 8080;

const replica = (name: string, ip: string): Replica => ({ name, ip });

/** Who serves the carts first. */
export const OLD: readonly Replica[] = [replica("cart-1", "10.1.1.1"), replica("cart-2", "10.1.2.1"), replica("cart-3", "10.1.3.1")];
/** Who takes their place. */
export const NEW: readonly Replica[] = [
  replica("cart-v2-1", "10.1.1.2"),
  replica("cart-v2-2", "10.1.2.2"),
  replica("cart-v2-3", "10.1.3.2"),
];
/** Who answers over UDP. */
export const DNS: readonly Replica[] = [replica("dns-1", "10.1.1.9"), replica("dns-2", "10.1.2.9")];

/** The services, in the order they are reported. */
export const TOWN: readonly TownService[] = [
  { name: "cart", about: "three servers, rolled out anew under load", clusterIP: "10.96.0.20", port: 80, protocol: "TCP" },
  {
    name: "checkout",
    about: "the same servers, with session affinity",
    clusterIP: "10.96.0.30",
    port: 80,
    protocol: "TCP",
    affinitySeconds: 600,
  },
  { name: "search", about: "has no endpoints", clusterIP: "10.96.0.60", port: 80, protocol: "TCP" },
  { name: "dns", about: "UDP, a question a packet", clusterIP: "10.96.0.53", port: 53, protocol: "UDP" },
];

/** Write the services and who serves them as ordinary manifests. Pure. */
export function manifestsOf(endpoints: Readonly<Record<TownService["name"], readonly TownEndpoint[]>>): string {
  const documents = TOWN.flatMap((service) => [serviceManifest(service), sliceManifest(service, endpoints[service.name])]);
  // JSON is YAML.
  return documents.map((document) => `---\n${JSON.stringify(document)}\n`).join("");
}

function serviceManifest({ name, clusterIP, port, protocol, affinitySeconds }: TownService): object {
  const affinity =
    affinitySeconds === undefined
      ? {}
      : { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: affinitySeconds } } };
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: "town" },
    spec: { clusterIP, clusterIPs: [clusterIP], ports: [{ name: "main", port, protocol }], ...affinity },
  };
}

function sliceManifest({ name, protocol }: TownService, endpoints: readonly TownEndpoint[]): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${name}-1`, namespace: "town", labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    ports: [{ name: "main", port: POD_PORT, protocol }],
    endpoints: endpoints.map(({ replica: { ip }, isLeaving = false }) => ({
      addresses: [ip],
      conditions: isLeaving ? { ready: false, serving: true, terminating: true } : { ready: true, serving: true, terminating: false },
    })),
  };
}
