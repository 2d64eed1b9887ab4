import type { IPFamily, Issue, Protocol } from "./api-objects.ts";

/** Identity of a row. */
export interface ServicePortName {
  /** The Service's namespace. */
  readonly namespace: string;
  /** The Service's name. */
  readonly name: string;
  /** Port name, "" when unnamed. */
  readonly port: string;
  /** Of this port alone: a Service may have one number in several. */
  readonly protocol: Protocol;
}

/** One endpoint of a row; canonical address, port 1–65535. */
export interface Endpoint {
  /** Canonical. */
  readonly ip: string;
  /** 1–65535. */
  readonly port: number;
  /** The node it runs on; undefined: nobody said. */
  readonly nodeName: string | undefined;
  /** It runs on the node this state is for. */
  readonly isLocal: boolean;
  /** Its condition of that name: it takes new connections. */
  readonly ready: boolean;
  /** Its condition of that name: it answers, also while it terminates. */
  readonly serving: boolean;
  /** Its condition of that name. */
  readonly terminating: boolean;
}

/** How a destination is reached. */
export type DestinationKind = "clusterIP" | "externalIP" | "loadBalancerIP" | "nodePort";

/**
 * Who a rule is about.
 * - `localPod`: detect-local says the packet comes from a pod (which pods, depends on the mode);
 * - `offCluster`: detect-local says it does not;
 * - `thisHost`: its source address is one of the host's own;
 * - `outsideSourceRanges`: its source is in none of the destination's `sourceRanges`;
 * - `anyone`: every packet.
 */
export type Origin = "localPod" | "offCluster" | "thisHost" | "outsideSourceRanges" | "anyone";

/** What happens to a packet: a pool of the row's endpoints, an ICMP port unreachable, or silence. */
export type Target = "cluster" | "local" | "reject" | "drop";

/** One line of a destination's policy. The first rule whose origin fits decides. */
export interface Rule {
  /** Which packets it is about. */
  readonly from: Origin;
  /** What becomes of them. A pool that is named here is never empty. */
  readonly to: Target;
  /** Rewrite the source address; hairpin connections are masqueraded in addition, whatever this says. */
  readonly masquerade: boolean;
}

/** An address and port a row answers on, with its policy. The last rule is always from `anyone`. */
export interface Destination {
  /** How it is reached. */
  readonly kind: DestinationKind;
  /** Canonical address; for `nodePort` the empty string: the node's node-port addresses. */
  readonly address: string;
  /** The port of the Service, or its node port; 1–65535. */
  readonly port: number;
  /** Canonical, disjoint CIDRs; present only where a rule is from `outsideSourceRanges`. */
  readonly sourceRanges?: readonly string[];
  /** In order; never empty. */
  readonly rules: readonly Rule[];
}

/** Which topology level narrowed the cluster pool; "" means all ready endpoints. */
export type TopologyMode = "" | "PreferSameZone" | "PreferSameNode";

/**
 * A row: everything one node needs to know of one port of one Service, in one family.
 *
 * Shape: plain data; `endpoints` is every endpoint in whatever condition, sorted by ip:port, unique;
 * `cluster` and `local` are ascending indexes into it, the pools that rules point to.
 */
export interface ServicePort {
  /** `namespace/name:port/protocol`, e.g. `shop/cart:http/TCP`: the identity as text. */
  readonly key: string;
  /** The identity in parts. */
  readonly name: ServicePortName;
  /** Of all its addresses and endpoints. */
  readonly family: IPFamily;
  /** Creation time in ms; ties are broken by key. Who came first wins a contested address. */
  readonly createdMs: number;
  /** All there are; which of them serve is in `cluster` and `local`. */
  readonly endpoints: readonly Endpoint[];
  /** Indexes of the endpoints that serve where the policy is Cluster. */
  readonly cluster: readonly number[];
  /** Indexes of the endpoints that serve where the policy is Local: those on this node. */
  readonly local: readonly number[];
  /** Why the cluster pool is narrow, if it is; for metrics. */
  readonly topology: TopologyMode;
  /** Every address and port it answers on. */
  readonly destinations: readonly Destination[];
  /** Client affinity timeout in seconds; undefined means none. */
  readonly affinitySeconds: number | undefined;
  /** `internalTrafficPolicy: Local`; the rules say what that means. */
  readonly internalLocal: boolean;
  /** `externalTrafficPolicy: Local`; the rules say what that means. */
  readonly externalLocal: boolean;
  /** The Service's health check node port, if it has one; the daemon answers there, no backend need. `readyLocal` counts the distinct IPs of ready local endpoints over all ports of the Service. */
  readonly healthCheck: { readonly port: number; readonly readyLocal: number } | undefined;
}

/** How detect-local tells a pod's packets; resolved for one family. */
export type LocalDetector =
  | { readonly by: "cidr"; readonly cidrs: readonly string[] }
  | { readonly by: "interface"; readonly name: string }
  | { readonly by: "interfacePrefix"; readonly prefix: string };

/** Flags and configuration that decide rules; they belong to the process that runs the backend. */
export interface NodeSettings {
  /** Masquerade whatever goes to a cluster IP; the rules say it already. */
  readonly masqueradeAll: boolean;
  /** Bit number 0–31 of the packet mark used to ask for masquerade. */
  readonly masqueradeBit: number;
  /** How pods are told; resolved for the family in {@link NodeContext.detector}. */
  readonly detectLocal: DetectLocal;
  /** CIDRs and the keywords `primary`, `localhost`, `all`; undefined: the backend's default. */
  readonly nodePortAddresses: readonly string[] | undefined;
  /** `false`: node ports do not answer on loopback although `nodePortAddresses` names it; absent: they do, where the backend says so. */
  readonly localhostNodePorts?: boolean;
}

/** detectLocalMode with its data, both families. */
export type DetectLocal =
  | { readonly mode: "ClusterCIDR"; readonly clusterCIDRs: readonly string[] }
  | { readonly mode: "NodeCIDR" }
  | { readonly mode: "BridgeInterface"; readonly bridgeInterface: string }
  | { readonly mode: "InterfaceNamePrefix"; readonly interfaceNamePrefix: string };

/** The node a state is computed for, in one family. */
export interface NodeContext {
  /** Its Node object's name. */
  readonly name: string;
  /** Of all addresses and ranges in here. */
  readonly family: IPFamily;
  /** The node's addresses of this family, primary first; empty until its Node object tells some. They outlast it. */
  readonly addresses: readonly string[];
  /** Its label topology.kubernetes.io/zone; "": none. */
  readonly zone: string;
  /** The ranges of its pods. */
  readonly podCIDRs: readonly string[];
  /** Known service ranges of this family; empty: unknown, nothing is dropped for being unallocated. */
  readonly serviceCIDRs: readonly string[];
  /** Undefined: this family has no way to tell pods, so no rule is from `localPod` or `offCluster`. */
  readonly detector: LocalDetector | undefined;
  /** What the process that runs the backend was told. */
  readonly settings: NodeSettings;
}

/** All rows of one node in one family at one revision. */
export interface NodeState {
  readonly node: NodeContext;
  readonly rows: ReadonlyMap<string, ServicePort>;
  readonly revision: number;
}

/**
 * What changed between two revisions of a node's state.
 *
 * Edges: `full` replaces everything the receiver has, also when `set` is empty; `delete` holds row keys.
 */
export interface ChangeSet {
  /** Identity of the node-state server's run; a revision means something only within one instance. */
  readonly instance: string;
  readonly revision: number;
  readonly family: IPFamily;
  readonly full: boolean;
  /** Present in a full change set and when the node's context changed. */
  readonly node?: NodeContext;
  readonly set: readonly ServicePort[];
  readonly delete: readonly string[];
  /** When the endpoint changes in here were triggered (ms since the epoch), for programming latency. */
  readonly triggersMs: readonly number[];
}

/** A pull-based stream of change sets of one family: what arrives while nobody pulls is merged into one. */
export interface Feed {
  /** Wait for the next change set; the first is full. @throws {ProxyError} `feed_lost`, or `canceled` on abort. */
  next(signal: AbortSignal): Promise<ChangeSet>;
  /** What was reported about API objects and still holds. Absent: where the feed comes from knows, and this process doesn't. */
  issues?(): Iterable<Issue>;
}
