import type { IPFamily } from "@turnout/core";

/** The node the samples are seen from; one other node has the remote endpoints. */
export const SAMPLE_NODE = "node1";
/** One endpoint of a sample: its number makes its address. Conditions left out are left out of the object. */
export interface SampleEndpoint {
  readonly on: "node1" | "node2";
  readonly number: number;
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
  readonly zones?: readonly string[];
}

/** One port, of the Service and of its slices. */
export interface SamplePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  /** Of the slice: what a named target port came to. */
  readonly target?: number;
  readonly nodePort?: number;
  readonly targetPort?: number | string;
}

/** One Service with its slices. */
export interface Sample {
  readonly name: string;
  /** Makes its cluster IPs. */
  readonly number: number;
  readonly ports?: readonly SamplePort[];
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly families?: readonly IPFamily[];
  /** Load-balancer addresses: the last number of each, in both families. */
  readonly ingress?: readonly number[];
  readonly ingressMode?: "Proxy";
  readonly externalIPs?: readonly number[];
  readonly endpoints?: readonly SampleEndpoint[];
}

const NAMESPACE = "shop";
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];

/** Write the node, and each sample as a Service with one slice per family. Pure. */
export function objectsOf(samples: readonly Sample[]): readonly Record<string, unknown>[] {
  return [nodeObject(), ...samples.flatMap((sample) => [serviceOf(sample), ...slicesOf(sample)])];
}

function nodeObject(): Record<string, unknown> {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: SAMPLE_NODE, labels: { "topology.kubernetes.io/zone": "zone-a" } },
    spec: { podCIDR: "10.1.1.0/24", podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] },
    status: {
      addresses: [
        { type: "InternalIP", address: "172.18.0.1" },
        { type: "InternalIP", address: "fd00:18::1" },
      ],
    },
  };
}

function serviceOf(sample: Sample): Record<string, unknown> {
  const { name, number, ports = [], spec, labels, families = FAMILIES, ingress, ingressMode, externalIPs } = sample;
  const clusterIPs = families.map((family) => address(family, { IPv4: "10.96.0.", IPv6: "fd00:96::" }, number));
  const outside = (numbers: readonly number[]): readonly string[] =>
    numbers.flatMap((last) => families.map((family) => address(family, { IPv4: "198.51.100.", IPv6: "fd00:198::" }, last)));
  const mode = ingressMode === undefined ? {} : { ipMode: ingressMode };
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: NAMESPACE, name, ...(labels === undefined ? {} : { labels }) },
    spec: {
      type: "ClusterIP",
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: families,
      ports: ports.map(({ target: _target, ...port }) => ({ protocol: "TCP", ...port })),
      ...(externalIPs === undefined ? {} : { externalIPs: outside(externalIPs) }),
      ...spec,
    },
    ...(ingress === undefined ? {} : { status: { loadBalancer: { ingress: outside(ingress).map((ip) => ({ ip, ...mode })) } } }),
  };
}

function slicesOf({ name, ports = [], labels, families = FAMILIES, endpoints = [] }: Sample): readonly Record<string, unknown>[] {
  return families.map((family) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace: NAMESPACE,
      name: `${name}-${family.toLowerCase()}`,
      labels: { "kubernetes.io/service-name": name, ...labels },
    },
    addressType: family,
    ports: ports.map(({ name: portName = "", protocol = "TCP", target }) => ({ name: portName, protocol, port: target })),
    endpoints: endpoints.map(({ on, number, zones, ...conditions }) => ({
      addresses: [
        address(family, on === "node1" ? { IPv4: "10.1.1.", IPv6: "fd00:1:1::" } : { IPv4: "10.1.2.", IPv6: "fd00:1:2::" }, number),
      ],
      conditions: { ready: true, ...conditions },
      nodeName: on,
      ...(zones === undefined ? {} : { hints: { forZones: zones.map((zone) => ({ name: zone })) } }),
    })),
  }));
}

function address(family: IPFamily, prefixes: Readonly<Record<IPFamily, string>>, number: number): string {
  return `${prefixes[family]}${family === "IPv4" ? number : number.toString(16)}`;
}
