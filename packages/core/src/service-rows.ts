import { destinationsFor } from "./destinations.ts";
import { endpointsFor } from "./endpoints.ts";
import type { Candidate } from "./endpoints.ts";
import type { NodeContext, ServicePort } from "./model.ts";
import { rowKey } from "./names.ts";
import type { EndpointSlice, Service, ServicePortSpec } from "./objects.ts";
import { poolsFor } from "./topology.ts";

/**
 * Make the rows of one Service for one node, in one family: one per port.
 *
 * Edges: no rows without a cluster IP of this family (headless, ExternalName, other family), whatever else it has.
 * @source semantics.md 1.2, 1.3, 2; rules
 */
export function rowsFor(service: Service, slices: ReadonlyMap<string, EndpointSlice>, context: NodeContext): readonly ServicePort[] {
  const addresses = service.addresses[context.family];
  if (addresses === undefined) return [];
  const candidates = service.ports.map((port) => endpointsFor(slices, port, context.family, context.name));
  const healthCheck =
    service.healthCheckNodePort === 0 ? undefined : { port: service.healthCheckNodePort, readyLocal: countReadyLocal(candidates) };
  return service.ports.map((port, index) => rowFor(service, port, candidates[index] ?? [], context, addresses, healthCheck));
}

function rowFor(
  service: Service,
  port: ServicePortSpec,
  candidates: readonly Candidate[],
  context: NodeContext,
  addresses: NonNullable<Service["addresses"][NodeContext["family"]]>,
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
  const sizes = { cluster: pools.cluster.length, local: pools.local.length, hasAny: pools.hasAny };
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

/** Distinct addresses of ready endpoints on this node over all ports: terminating ones don't count (subtlety 7). */
function countReadyLocal(candidates: readonly (readonly Candidate[])[]): number {
  const ips = new Set<string>();
  for (const port of candidates) for (const { endpoint } of port) if (endpoint.isLocal && endpoint.ready) ips.add(endpoint.ip);
  return ips.size;
}
