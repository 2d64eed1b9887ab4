import { destinationsFor } from "./destinations.ts";
import { endpointsFor } from "./endpoints.ts";
import type { Candidate } from "./endpoints.ts";
import { isEqual } from "../model/equal.ts";
import type { NodeContext, ServicePort } from "../model/rows.ts";
import { rowKey } from "../model/names.ts";
import type { EndpointSlice, IPFamily, Service, ServiceAddresses, ServicePortSpec } from "../model/api-objects.ts";
import { poolsFor } from "./topology.ts";

/** What the rows of one Service are made of, in one family. */
export interface ServiceParts {
  readonly service: Service;
  readonly addresses: ServiceAddresses;
  /** Of each port of the Service, in their order. */
  readonly candidates: readonly (readonly Candidate[])[];
}

/**
 * Make the rows of one Service for one node, in one family: one per port.
 *
 * Edges: no rows without a cluster IP of this family (headless, ExternalName, other family), whatever else it has.
 * @source rules
 */
export function rowsFor(service: Service, slices: ReadonlyMap<string, EndpointSlice>, context: NodeContext): readonly ServicePort[] {
  const parts = partsFor(service, slices, context.family, context.name);
  return parts === undefined ? [] : rowsOfParts(parts, context);
}

/**
 * Put together what rows are made of. Endpoints on `nodeName` are local; "": none is.
 *
 * Edges: undefined without a cluster IP of this family.
 */
export function partsFor(
  service: Service,
  slices: ReadonlyMap<string, EndpointSlice>,
  family: IPFamily,
  nodeName: string,
): ServiceParts | undefined {
  const addresses = service.addresses[family];
  if (addresses === undefined) return undefined;
  return { service, addresses, candidates: service.ports.map((port) => endpointsFor(slices, port, family, nodeName)) };
}

/** The keys of the rows of parts, in order; none of undefined. */
export function rowKeysOf(parts: ServiceParts | undefined): readonly string[] {
  if (parts === undefined) return [];
  const { namespace, name, ports } = parts.service;
  return ports.map((port) => rowKey(namespace, name, port.name, port.protocol));
}

/** Make rows of parts that are local to the context's node. */
export function rowsOfParts({ service, addresses, candidates }: ServiceParts, context: NodeContext): readonly ServicePort[] {
  const healthCheck =
    service.healthCheckNodePort === 0 ? undefined : { port: service.healthCheckNodePort, readyLocal: countReadyLocal(candidates) };
  return service.ports.map((port, index) => rowFor(service, port, candidates[index] ?? [], context, addresses, healthCheck));
}

/** Make the endpoints on a node local, of parts in which none is; the others stay the same objects. */
export function localizedParts(parts: ServiceParts, nodeName: string): ServiceParts {
  const localized = (candidate: Candidate): Candidate =>
    candidate.endpoint.nodeName === nodeName ? { ...candidate, endpoint: { ...candidate.endpoint, isLocal: true } } : candidate;
  return { ...parts, candidates: parts.candidates.map((port) => port.map(localized)) };
}

/** Tell whether parts of the same Service make the same rows on every node. */
export function isSameParts(a: ServiceParts | undefined, b: ServiceParts | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (!isEqual(a.candidates, b.candidates)) return false;
  if (a.service === b.service) return true;
  return isEqual(a.addresses, b.addresses) && isEqual({ ...a.service, addresses: {} }, { ...b.service, addresses: {} });
}

function rowFor(
  service: Service,
  port: ServicePortSpec,
  candidates: readonly Candidate[],
  context: NodeContext,
  addresses: ServiceAddresses,
  healthCheck: ServicePort["healthCheck"],
): ServicePort {
  const isExternal = port.nodePort !== 0 || addresses.externalIPs.length > 0 || addresses.loadBalancerIPs.length > 0;
  const pools = poolsFor(candidates, {
    nodeName: context.name,
    zone: context.zone,
    // An external destination may be short-circuited to the cluster pool even when both policies are Local.
    usesCluster: !service.internalLocal || isExternal,
    usesLocal: service.internalLocal || (service.externalLocal && isExternal),
  });
  const sizes = { cluster: pools.cluster.length, local: pools.local.length, hasUsableEndpoints: pools.hasUsableEndpoints };
  return {
    key: rowKey(service.namespace, service.name, port.name, port.protocol),
    name: { namespace: service.namespace, name: service.name, port: port.name, protocol: port.protocol },
    family: context.family,
    createdMs: service.createdMs,
    endpoints: candidates.map(({ endpoint }) => endpoint),
    cluster: pools.cluster,
    local: pools.local,
    topology: pools.topology,
    destinations: destinationsFor(service, port, addresses, sizes, context),
    affinitySeconds: service.affinitySeconds,
    internalLocal: service.internalLocal,
    externalLocal: service.externalLocal,
    healthCheck,
  };
}

/** Distinct addresses of ready endpoints on this node over all ports: terminating ones don't count. */
function countReadyLocal(candidates: readonly (readonly Candidate[])[]): number {
  const ips = new Set<string>();
  for (const port of candidates) for (const { endpoint } of port) if (endpoint.isLocal && endpoint.ready) ips.add(endpoint.ip);
  return ips.size;
}
