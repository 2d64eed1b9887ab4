import { cidrContains, familyOf, parseCIDR, parseIP } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";
import type { EndpointSlice, IPFamily, Protocol } from "../model/api-objects.ts";
import { RangeIndex } from "../model/range-index.ts";
import type { Destination } from "../model/rows.ts";
import type { EndpointOwner, EndpointsInUse } from "./endpoints-in-use.ts";

/** What the cluster has of its own, in one family: Services can't claim it by their age. */
export interface Ground {
  /** The known service ranges. */
  readonly serviceRanges: readonly CIDR[];
  /** Canonical addresses of every Node that is known. */
  readonly nodeAddresses: ReadonlySet<string>;
  /** Pod ranges of every Node that is known, with its name. */
  readonly podRanges: RangeIndex<string>;
  /** Those of the node that rules are for; none where that is many. */
  readonly ownPodRanges: RangeIndex<string>;
  /** `address port` of the servers that API objects come from, over TCP. */
  readonly sourceAddresses: ReadonlySet<string>;
  /** External IPs that something else uses are refused, and not only reported. */
  readonly isStrict: boolean;
}

/** What the ground is made of. */
export interface GroundSource {
  serviceCIDRs(): readonly string[];
  nodeAddresses(): Iterable<string>;
  podRanges(): Iterable<{ readonly range: string; readonly of: string }>;
  slices(serviceKey: string): ReadonlyMap<string, EndpointSlice>;
  readonly sourceAddresses: Iterable<string>;
  readonly refusesAddressesInUse: boolean;
}

/** What uses an address and port that a Service wants from outside. */
export interface AddressUse {
  readonly as: "serviceRange" | "source" | "endpoint" | "podRange" | "node";
  /** The range, the Service (`namespace/name`) that has the endpoint, or ""; with the Node's name behind a pod range. */
  readonly by: string;
  /** The Service does not get the address; false: that is only reported. */
  readonly isRefused: boolean;
}

/** Who asks for an address. */
export interface AddressWanted {
  readonly namespace: string;
  readonly createdMs: number;
  readonly protocol: Protocol;
}

/** The Service of the API servers themselves. */
export const API_SERVERS = "default/kubernetes";

/** The ground of a cluster that nothing is known of. */
export const NO_GROUND: Ground = {
  serviceRanges: [],
  nodeAddresses: new Set(),
  podRanges: new RangeIndex<string>([]),
  ownPodRanges: new RangeIndex<string>([]),
  sourceAddresses: new Set(),
  isStrict: false,
};

/** Tell the ground that a store knows, in one family; `nodeName`: for rules of this node. */
export function groundOf(store: GroundSource, family: IPFamily, nodeName?: string): Ground {
  const apiServers = [...store.slices(API_SERVERS).values()].flatMap(({ endpoints, ports }) =>
    endpoints.flatMap(({ ip }) => ports.flatMap(({ port, protocol }) => (protocol === "TCP" ? [`${ip} ${port}`] : []))),
  );
  const podRanges = [...store.podRanges()].filter(({ range }) => familyOf(range) === family);
  return {
    serviceRanges: store.serviceCIDRs().flatMap((text) => parseCIDR(text) ?? []),
    nodeAddresses: new Set([...store.nodeAddresses()].filter((address) => familyOf(address) === family)),
    podRanges: new RangeIndex(podRanges),
    ownPodRanges: new RangeIndex(podRanges.filter(({ of }) => of === nodeName)),
    sourceAddresses: new Set([...store.sourceAddresses, ...apiServers]),
    isStrict: store.refusesAddressesInUse,
  };
}

/**
 * Find what else uses an address that a Service wants from outside. Only external IPs are ever refused: who may write a Service names them, and
 * load-balancer IPs come from a controller.
 *
 * Edges: of several uses one that refuses comes first.
 * @source rules
 */
export function useOf(
  { kind, address, port }: Pick<Destination, "kind" | "address" | "port">,
  wanted: AddressWanted,
  ground: Ground,
  endpoints?: EndpointsInUse,
): AddressUse | undefined {
  const isExternal = kind === "externalIP";
  const ip = isExternal || kind === "loadBalancerIP" ? parseIP(address) : undefined;
  if (ip === undefined) return undefined;
  const range = isExternal ? ground.serviceRanges.find((one) => cidrContains(one, ip))?.text : undefined;
  if (range !== undefined) return { as: "serviceRange", by: range, isRefused: true };
  if (wanted.protocol === "TCP" && ground.sourceAddresses.has(`${address} ${port}`)) return { as: "source", by: "", isRefused: isExternal };
  const own = ground.ownPodRanges.find(ip);
  const pods = own ?? ground.podRanges.find(ip);
  const isOwn = own !== undefined;
  const owner = endpoints?.ownerOf(address, port, wanted.protocol, wanted.namespace);
  const isOlder = isRefusedFor(owner, wanted.createdMs, ground);
  if (owner !== undefined && (isOlder || !isOwn)) return { as: "endpoint", by: owner.service, isRefused: isExternal && isOlder };
  const isStrict = isExternal && ground.isStrict;
  if (pods !== undefined) return { as: "podRange", by: `${pods.range} of Node ${pods.of}`, isRefused: isStrict || (isExternal && isOwn) };
  return isExternal && ground.nodeAddresses.has(address) ? { as: "node", by: "", isRefused: isStrict } : undefined;
}

/** Tell whether another namespace's endpoint keeps an external IP from a Service that was created then. */
export function isRefusedFor(owner: EndpointOwner | undefined, createdMs: number, { isStrict }: Ground): boolean {
  return owner !== undefined && (isStrict || owner.createdMs < createdMs);
}
