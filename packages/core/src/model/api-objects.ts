/** The IP family of an address; the whole model exists once per family. */
export type IPFamily = "IPv4" | "IPv6";

/** Both families, in the order they are reported. */
export const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];

/** Protocols a Service port can have. */
export type Protocol = "TCP" | "UDP" | "SCTP";

/** The API objects Turnout reads. */
export type ObjectKind = "Service" | "EndpointSlice" | "Node" | "ServiceCIDR";

/** Every kind Turnout reads, in the order sources list them. */
export const OBJECT_KINDS: readonly ObjectKind[] = ["Node", "ServiceCIDR", "Service", "EndpointSlice"];

/**
 * Of each kind, the label whose presence, whatever its value, hides an object from service proxies; undefined where none does.
 *
 * @source kube-proxy cmd/kube-proxy/app/server.go Run; rule R-63
 */
export const HIDING_LABELS: Readonly<Record<ObjectKind, string | undefined>> = {
  Service: "service.kubernetes.io/service-proxy-name",
  EndpointSlice: "service.kubernetes.io/headless",
  Node: undefined,
  ServiceCIDR: undefined,
};

/** One port of a Service. `name` is "" when unnamed; `nodePort` 0 means none. Ports are 1–65535. */
export interface ServicePortSpec {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly nodePort: number;
}

/** Addresses a Service has in one family, canonical text, no duplicates. */
export interface ServiceAddresses {
  readonly clusterIP: string;
  readonly externalIPs: readonly string[];
  /** status.loadBalancer.ingress IPs in VIP mode (`ipMode: Proxy` entries are left out). */
  readonly loadBalancerIPs: readonly string[];
  /** Load-balancer IPs that no rule is about: in `ipMode: Proxy`, or closed because no source range lets a client in; present where there are some. */
  readonly unserved?: readonly { readonly ip: string; readonly why: "ipMode" | "sourceRanges" }[];
  /** Allowed sources for load-balancer IPs, canonical CIDRs; empty means unrestricted. */
  readonly sourceRanges: readonly string[];
}

/** A v1 Service reduced to what a service proxy reads, validated. A headless or ExternalName one has no addresses. */
export interface Service {
  readonly namespace: string;
  readonly name: string;
  /** metadata.creationTimestamp in ms since the epoch; 0 when absent. */
  readonly createdMs: number;
  readonly ports: readonly ServicePortSpec[];
  readonly addresses: Readonly<Partial<Record<IPFamily, ServiceAddresses>>>;
  /** Session affinity timeout in seconds; undefined means no affinity. */
  readonly affinitySeconds: number | undefined;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
  /** 0 means none. */
  readonly healthCheckNodePort: number;
}

/** One endpoint of an EndpointSlice; conditions have their defaults applied. */
export interface SliceEndpoint {
  readonly ip: string;
  readonly nodeName: string | undefined;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  /** Empty means "no hint". */
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Name of the Pod behind it, where the store keeps it; kpng's protocols join a pod's families by it. */
  readonly podName: string | undefined;
}

/** One port of an EndpointSlice that has a number (nil and 0 are dropped at the door). */
export interface SlicePort {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

/** A discovery.k8s.io/v1 EndpointSlice reduced to what a service proxy reads, validated. */
export interface EndpointSlice {
  readonly namespace: string;
  readonly name: string;
  /** Value of the label kubernetes.io/service-name. */
  readonly service: string;
  readonly family: IPFamily;
  /** metadata.creationTimestamp in ms since the epoch; 0 when absent. */
  readonly createdMs: number;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly SliceEndpoint[];
  /** Annotation endpoints.kubernetes.io/last-change-trigger-time in ms since the epoch. */
  readonly triggeredMs: number | undefined;
}

/** A v1 Node reduced to what a service proxy reads. */
export interface Node {
  readonly name: string;
  /** InternalIPs first, then ExternalIPs, canonical, both families. */
  readonly addresses: readonly string[];
  readonly podCIDRs: readonly string[];
  /** Label topology.kubernetes.io/zone, "" when unset. */
  readonly zone: string;
  /** It carries a deletionTimestamp. */
  readonly isDeleting: boolean;
  /** It carries the taint ToBeDeletedByClusterAutoscaler. */
  readonly isLeaving: boolean;
}

/** A networking.k8s.io/v1 ServiceCIDR reduced to its ranges. */
export interface ServiceCIDR {
  readonly name: string;
  readonly cidrs: readonly string[];
}

/** Tells a Service from others that had its name, and its versions from one another. */
export interface ServiceIdentity {
  readonly uid: string;
  /** metadata.generation; API servers that give Services none: metadata.resourceVersion. */
  readonly version: string;
}

/** Something wrong with an API object: what was skipped, and why. Reported once per object version. */
export interface Issue {
  /** e.g. `Service shop/cart`. */
  readonly object: string;
  /** What was found and what was done about it. */
  readonly what: string;
  /** What its owner can do. */
  readonly hint: string;
  /** The Service that it concerns, `namespace/name`, where `object` names none. */
  readonly service?: string;
  /** What users are shown at Services, where the API server takes Events; absent: nothing. */
  readonly events?: readonly ServiceEvent[];
}

/** Something about a Service that is the same on all nodes. */
export interface ServiceEvent {
  readonly reason: ServiceEventReason;
  /** `namespace/name`. */
  readonly service: string;
  /** For people. One that is equal to an earlier one is the same Event. */
  readonly note: string;
}

/**
 * - `AddressContested`: another Service wants an address and port that this one wants, too.
 * - `FamilyWithoutSourceRanges`: there is no readable source range for load-balancer IPs of one family, though there is a list.
 */
export type ServiceEventReason = "AddressContested" | "FamilyWithoutSourceRanges";
