import { destinationsFor } from "./destinations.ts";
import { endpointsOfPorts, localized } from "./endpoints.ts";
import type { PortEndpoints } from "./endpoints.ts";
import { isEqual, withEqual } from "../model/equal.ts";
import type { NodeContext, ServicePort } from "../model/rows.ts";
import { rowKey } from "../model/names.ts";
import type { EndpointSlice, IPFamily, Service, ServiceAddresses, ServicePortSpec, SliceEndpoint } from "../model/api-objects.ts";
import { poolsFor } from "./topology.ts";
import type { PoolQuestion, Pools } from "./topology.ts";

/** What the rows of one Service are made of, in one family. */
export interface ServiceParts {
  readonly service: Service;
  readonly addresses: ServiceAddresses;
  /** Of each port of the Service, in their order. */
  readonly portEndpoints: readonly PortEndpoints[];
}

/** The rows of one Service for one node, with what they were made of. */
export interface ServiceRows {
  readonly rows: readonly ServicePort[];
  readonly parts: ServiceParts;
  readonly context: NodeContext;
}

/**
 * Make the rows of one Service for one node, in one family: one per port.
 *
 * Shape: what is equal in `before`, the Service's rows as they were, stays the same object, and so does a row that is equal.
 * Edges: no rows without a cluster IP of this family (headless, ExternalName, other family), whatever else it has.
 * @source rules
 */
export function rowsFor(
  service: Service,
  slices: ReadonlyMap<string, EndpointSlice>,
  context: NodeContext,
  before?: ServiceRows,
): ServiceRows | undefined {
  const parts = partsFor(service, slices, context.family, context.name, before?.parts);
  return parts === undefined ? undefined : rowsOfParts(parts, context, before);
}

/**
 * Put together what rows are made of. Endpoints on `nodeName` are local; "": none is. What is equal in `before` stays the same objects.
 *
 * Edges: undefined without a cluster IP of this family.
 */
export function partsFor(
  service: Service,
  slices: ReadonlyMap<string, EndpointSlice>,
  family: IPFamily,
  nodeName: string,
  before?: ServiceParts,
): ServiceParts | undefined {
  const addresses = service.addresses[family];
  if (addresses === undefined) return undefined;
  const shared = 1 + addresses.externalIPs.length + addresses.loadBalancerIPs.length;
  const ports = service.ports.map(({ name, protocol, nodePort }) => ({ name, protocol, places: nodePort === 0 ? shared : shared + 1 }));
  return { service, addresses, portEndpoints: endpointsOfPorts(slices, ports, family, nodeName, before?.portEndpoints) };
}

/** The keys of the rows of parts, in order; none of undefined. */
export function rowKeysOf(parts: ServiceParts | undefined): readonly string[] {
  if (parts === undefined) return [];
  const { namespace, name, ports } = parts.service;
  return ports.map((port) => rowKey(namespace, name, port.name, port.protocol));
}

/** Make rows of parts that are local to the context's node; what is equal in `before` stays the same objects. */
export function rowsOfParts(parts: ServiceParts, context: NodeContext, before?: ServiceRows): ServiceRows {
  const { service, addresses, portEndpoints } = parts;
  const healthCheck =
    service.healthCheckNodePort === 0 ? undefined : { port: service.healthCheckNodePort, readyLocal: countReadyLocal(portEndpoints) };
  const rows = service.ports.map((port, index) => {
    const known = before === undefined ? undefined : knownPort(before, index, port);
    const endpoints = portEndpoints[index] as PortEndpoints;
    const question = questionFor(service, addresses, port, context);
    const isAsked = known !== undefined && known.endpoints === endpoints && isEqual(known.question, question);
    const pools = isAsked ? known.row : poolsFor(endpoints, question);
    const isRuled =
      known !== undefined && before?.parts.service === service && before.context === context && hasSameRules(known, pools, endpoints);
    const sizes = { cluster: pools.cluster.length, local: pools.local.length, hasUsableEndpoints: endpoints.hasUsable };
    const { namespace, name } = service;
    const row: ServicePort = {
      key: known?.row.key ?? rowKey(namespace, name, port.name, port.protocol),
      name: known?.row.name ?? { namespace, name, port: port.name, protocol: port.protocol },
      family: context.family,
      createdMs: service.createdMs,
      endpoints: endpoints.endpoints,
      cluster: pools.cluster,
      local: pools.local,
      topology: pools.topology,
      destinations: isRuled ? known.row.destinations : destinationsFor(service, port, addresses, sizes, context),
      affinitySeconds: service.affinitySeconds,
      internalLocal: service.internalLocal,
      externalLocal: service.externalLocal,
      healthCheck,
    };
    return withEqual(known?.row, row);
  });
  return { rows, parts, context };
}

/** What a port was, if it was there in the same place. */
interface KnownPort {
  readonly row: ServicePort;
  readonly endpoints: PortEndpoints;
  readonly question: PoolQuestion;
}

function knownPort({ rows, parts, context }: ServiceRows, index: number, port: ServicePortSpec): KnownPort | undefined {
  const [row, endpoints, spec] = [rows[index], parts.portEndpoints[index], parts.service.ports[index]];
  if (row === undefined || endpoints === undefined || spec === undefined) return undefined;
  if (spec.name !== port.name || spec.protocol !== port.protocol) return undefined;
  return { row, endpoints, question: questionFor(parts.service, parts.addresses, spec, context) };
}

/** Rules ask of a pool only whether anything is in it. */
function hasSameRules({ row, endpoints }: KnownPort, pools: Pick<Pools, "cluster" | "local">, now: PortEndpoints): boolean {
  const isSame = row.cluster.length > 0 === pools.cluster.length > 0 && row.local.length > 0 === pools.local.length > 0;
  return isSame && endpoints.hasUsable === now.hasUsable;
}

/** Make the endpoints on a node local, of parts in which none is; the others stay the same objects. */
export function localizedParts(parts: ServiceParts, nodeName: string): ServiceParts {
  return { ...parts, portEndpoints: parts.portEndpoints.map((port) => localized(port, nodeName)) };
}

/** Tell whether parts of the same Service make the same rows on every node. */
export function isSameParts(a: ServiceParts | undefined, b: ServiceParts | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.portEndpoints.length !== b.portEndpoints.length) return false;
  if (!a.portEndpoints.every((port, index) => isSameOnNodes(port, b.portEndpoints[index] as PortEndpoints))) return false;
  if (a.service === b.service) return true;
  return isEqual(a.addresses, b.addresses) && isEqual({ ...a.service, addresses: {} }, { ...b.service, addresses: {} });
}

/** Tell whether a port's endpoints are the same, and the hints for nodes and zones. */
function isSameOnNodes(a: PortEndpoints, b: PortEndpoints): boolean {
  if (a === b) return true;
  if (!isEqual(a.endpoints, b.endpoints) || !isEqual(a.rivals, b.rivals)) return false;
  return a.entries.every((entry, index) => {
    const other = b.entries[index] as SliceEndpoint;
    return entry === other || (isEqual(entry.zoneHints, other.zoneHints) && isEqual(entry.nodeHints, other.nodeHints));
  });
}

function questionFor(
  service: Service,
  { externalIPs, loadBalancerIPs }: ServiceAddresses,
  { nodePort }: ServicePortSpec,
  { name, zone }: NodeContext,
): PoolQuestion {
  const isExternal = nodePort !== 0 || externalIPs.length > 0 || loadBalancerIPs.length > 0;
  return {
    nodeName: name,
    zone,
    // An external destination may be short-circuited to the cluster pool even when both policies are Local.
    usesCluster: !service.internalLocal || isExternal,
    usesLocal: service.internalLocal || (service.externalLocal && isExternal),
  };
}

/** Distinct addresses of ready endpoints on this node over all ports: terminating ones don't count. */
function countReadyLocal(portEndpoints: readonly PortEndpoints[]): number {
  const ips = new Set<string>();
  for (const { endpoints } of portEndpoints) for (const one of endpoints) if (one.isLocal && one.ready) ips.add(one.ip);
  return ips.size;
}
