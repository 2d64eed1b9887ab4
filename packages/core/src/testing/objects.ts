/** An API object as it comes over the wire. */
export type RawObject = Readonly<Record<string, unknown>>;

/** What can be said of a Service besides its spec. */
export interface ServiceExtras {
  /** Default "shop". */
  readonly namespace?: string;
  /** metadata.creationTimestamp; default 2024-01-01T00:00:00Z. */
  readonly created?: string;
  /** status.loadBalancer.ingress, as the API has it. */
  readonly ingress?: readonly unknown[];
}

/** Write a v1 Service; fields of `spec` replace those of a ClusterIP Service 10.96.0.1 with one port http 80/TCP. */
export function rawService(name: string, spec: RawObject = {}, extras: ServiceExtras = {}): RawObject {
  const { namespace = "shop", created = "2024-01-01T00:00:00Z", ingress } = extras;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace, name, creationTimestamp: created },
    spec: { type: "ClusterIP", clusterIP: "10.96.0.1", ports: [{ name: "http", port: 80, protocol: "TCP" }], ...spec },
    ...(ingress === undefined ? {} : { status: { loadBalancer: { ingress } } }),
  };
}

/** One endpoint in short; what is left out stays out of the object (so that defaults are really those of the reader). */
export interface EndpointShort {
  readonly ip: string;
  readonly node?: string;
  readonly ready?: boolean | null;
  readonly serving?: boolean | null;
  readonly terminating?: boolean | null;
  readonly zones?: readonly string[];
  readonly nodes?: readonly string[];
  /** Name of the Pod in targetRef. */
  readonly pod?: string;
}

/** What can be said of a slice besides its endpoints. */
export interface SliceExtras {
  /** Default "shop". */
  readonly namespace?: string;
  /** Name of the slice; default `<service>-1`. */
  readonly name?: string;
  /** Default "IPv4". */
  readonly addressType?: string;
  /** Default one port http 8080/TCP. */
  readonly ports?: readonly unknown[] | null;
  /** The annotation endpoints.kubernetes.io/last-change-trigger-time. */
  readonly triggered?: string;
  /** metadata.creationTimestamp. */
  readonly created?: string;
}

/** Write a discovery.k8s.io/v1 EndpointSlice of a Service. */
export function rawSlice(service: string, endpoints: readonly EndpointShort[], extras: SliceExtras = {}): RawObject {
  const { namespace = "shop", name = `${service}-1`, addressType = "IPv4", triggered, created } = extras;
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace,
      name,
      labels: { "kubernetes.io/service-name": service },
      ...(created === undefined ? {} : { creationTimestamp: created }),
      ...(triggered === undefined ? {} : { annotations: { "endpoints.kubernetes.io/last-change-trigger-time": triggered } }),
    },
    addressType,
    ports: extras.ports === undefined ? [{ name: "http", port: 8080, protocol: "TCP" }] : extras.ports,
    endpoints: endpoints.map(rawEndpoint),
  };
}

/** Write one endpoint of a slice. */
export function rawEndpoint({ ip, node, zones, nodes, pod, ...conditions }: EndpointShort): RawObject {
  const hints = {
    ...(zones === undefined ? {} : { forZones: zones.map((name) => ({ name })) }),
    ...(nodes === undefined ? {} : { forNodes: nodes.map((name) => ({ name })) }),
  };
  return {
    addresses: [ip],
    conditions,
    ...(node === undefined ? {} : { nodeName: node }),
    ...(pod === undefined ? {} : { targetRef: { kind: "Pod", name: pod } }),
    ...(zones === undefined && nodes === undefined ? {} : { hints }),
  };
}

/** What can be said of a Node. */
export interface NodeExtras {
  readonly zone?: string;
  /** InternalIPs; default 172.18.0.1. */
  readonly addresses?: readonly string[];
  readonly podCIDRs?: readonly string[];
  readonly taints?: readonly unknown[];
}

/** Write a v1 Node. */
export function rawNode(name: string, { zone, addresses = ["172.18.0.1"], podCIDRs, taints }: NodeExtras = {}): RawObject {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, ...(zone === undefined ? {} : { labels: { "topology.kubernetes.io/zone": zone } }) },
    spec: { ...(podCIDRs === undefined ? {} : { podCIDRs }), ...(taints === undefined ? {} : { taints }) },
    status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) },
  };
}

/** Write a networking.k8s.io/v1 ServiceCIDR. */
export function rawServiceCIDR(name: string, cidrs: readonly unknown[]): RawObject {
  return { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: { name }, spec: { cidrs } };
}
