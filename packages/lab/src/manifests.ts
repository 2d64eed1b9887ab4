import type { IPFamily, Protocol } from "@turnout/core";
import type { Cluster, NodePlace, Place } from "./cluster.ts";

/** One port of a Service to write; `targetPort` defaults to `port`. */
export interface PortManifest {
  readonly name?: string;
  readonly protocol?: Protocol;
  readonly port: number;
  readonly targetPort?: number;
  readonly nodePort?: number;
}

/** A Service to write, with the fields a service proxy reads. One cluster IP per family, primary first. */
export interface ServiceManifest {
  /** Default `default`. */
  readonly namespace?: string;
  readonly name: string;
  readonly clusterIPs: readonly string[];
  readonly ports: readonly PortManifest[];
  /** Default: NodePort when a port has one, LoadBalancer when there are ingress addresses, else ClusterIP. */
  readonly type?: "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName";
  readonly labels?: Readonly<Record<string, string>>;
  readonly externalIPs?: readonly string[];
  readonly ingress?: readonly { readonly ip: string; readonly ipMode?: "VIP" | "Proxy" }[];
  readonly sourceRanges?: readonly string[];
  readonly internalTrafficPolicy?: "Cluster" | "Local";
  readonly externalTrafficPolicy?: "Cluster" | "Local";
  /** ClientIP affinity with this timeout; none when absent. */
  readonly affinitySeconds?: number;
  readonly healthCheckNodePort?: number;
}

/** One endpoint to write. Conditions left out are left out of the object. */
export interface EndpointManifest {
  /** The place that serves: its address, and the node it is on. */
  readonly place: Place;
  readonly nodeName?: string;
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

/** Write a v1 Service. Pure. */
export function serviceManifest(service: ServiceManifest): Record<string, unknown> {
  const { ports, clusterIPs, ingress } = service;
  const isExternal = service.externalIPs !== undefined || ingress !== undefined || ports.some((port) => port.nodePort !== undefined);
  const type =
    service.type ?? (ingress !== undefined ? "LoadBalancer" : ports.some((port) => port.nodePort !== undefined) ? "NodePort" : "ClusterIP");
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: service.namespace ?? "default", name: service.name, ...given({ labels: service.labels }) },
    spec: {
      type,
      clusterIP: clusterIPs[0] ?? "None",
      clusterIPs,
      ipFamilies: clusterIPs.map((ip) => (ip.includes(":") ? "IPv6" : "IPv4")),
      ports: ports.map((port) => ({ protocol: "TCP", targetPort: port.port, ...port })),
      internalTrafficPolicy: service.internalTrafficPolicy ?? "Cluster",
      ...(isExternal ? { externalTrafficPolicy: service.externalTrafficPolicy ?? "Cluster" } : {}),
      ...given({
        externalIPs: service.externalIPs,
        loadBalancerSourceRanges: service.sourceRanges,
        healthCheckNodePort: service.healthCheckNodePort,
      }),
      ...(service.affinitySeconds === undefined
        ? { sessionAffinity: "None" }
        : { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: service.affinitySeconds } } }),
    },
    ...(ingress === undefined ? {} : { status: { loadBalancer: { ingress } } }),
  };
}

/** Write one EndpointSlice of a service per family that `families` names. Pure. */
export function sliceManifests(
  service: ServiceManifest,
  endpoints: readonly EndpointManifest[],
  families: readonly IPFamily[],
): readonly Record<string, unknown>[] {
  const namespace = service.namespace ?? "default";
  return families.map((family) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { namespace, name: `${service.name}-${family.toLowerCase()}`, labels: { "kubernetes.io/service-name": service.name } },
    addressType: family,
    ports: service.ports.map((port) => ({ name: port.name ?? "", protocol: port.protocol ?? "TCP", port: port.targetPort ?? port.port })),
    endpoints: endpoints.map((endpoint) => endpointManifest(endpoint, family)),
  }));
}

function endpointManifest(endpoint: EndpointManifest, family: IPFamily): Record<string, unknown> {
  const { place, ready = true, serving, terminating, zoneHints, nodeHints } = endpoint;
  const hints = given({
    forZones: zoneHints?.map((name) => ({ name })),
    forNodes: nodeHints?.map((name) => ({ name })),
  });
  return {
    addresses: [place.address(family)],
    conditions: { ready, ...given({ serving, terminating }) },
    ...given({ nodeName: endpoint.nodeName ?? place.node }),
    ...(Object.keys(hints).length === 0 ? {} : { hints }),
  };
}

/** Write the Node objects of a cluster. Pure. */
export function nodeManifests(cluster: Cluster): readonly Record<string, unknown>[] {
  return cluster.nodes.map((node) => nodeManifest(node, cluster.families));
}

function nodeManifest(node: NodePlace, families: readonly IPFamily[]): Record<string, unknown> {
  const zone = node.zone === "" ? {} : { "topology.kubernetes.io/zone": node.zone };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: node.name, labels: { "kubernetes.io/hostname": node.name, ...zone } },
    spec: { podCIDR: node.podCIDRs[0], podCIDRs: node.podCIDRs },
    status: {
      addresses: [
        ...families.map((family) => ({ type: "InternalIP", address: node.address(family) })),
        { type: "Hostname", address: node.name },
      ],
      conditions: [{ type: "Ready", status: "True" }],
    },
  };
}

/** Write a networking.k8s.io/v1 ServiceCIDR. Pure. */
export function serviceCIDRManifest(cidrs: readonly string[]): Record<string, unknown> {
  return { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name: "kubernetes" }, spec: { cidrs } };
}

/** Leave out what is undefined. */
function given(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
