import type { ServicePort } from "./rows.ts";

/** What a Service's health check node port answers with, and where. */
export interface ServiceHealth {
  readonly port: number;
  /** Distinct ready endpoint addresses on this node. */
  readonly readyLocal: number;
  /** The Service's load-balancer IPs: load balancers may send probes there. */
  readonly loadBalancerIPs: readonly string[];
}

/**
 * List the Services that have a health check node port, by `namespace/name`.
 * @source rules
 */
export function serviceHealth(rows: Iterable<ServicePort>): ReadonlyMap<string, ServiceHealth> {
  const health = new Map<string, ServiceHealth>();
  for (const { name, healthCheck, destinations } of rows) {
    if (healthCheck === undefined) continue;
    const key = `${name.namespace}/${name.name}`;
    const balanced = destinations.flatMap(({ kind, address }) => (kind === "loadBalancerIP" ? [address] : []));
    const loadBalancerIPs = [...new Set([...(health.get(key)?.loadBalancerIPs ?? []), ...balanced])];
    health.set(key, { ...healthCheck, loadBalancerIPs });
  }
  return health;
}
