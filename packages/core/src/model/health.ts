import type { ServicePort } from "./rows.ts";

/** What a Service's health check node port answers with. */
export interface ServiceHealth {
  readonly port: number;
  /** Distinct ready endpoint addresses on this node. */
  readonly readyLocal: number;
}

/**
 * List the Services that have a health check node port, by `namespace/name`.
 * @source rule R-50
 */
export function serviceHealth(rows: Iterable<ServicePort>): ReadonlyMap<string, ServiceHealth> {
  const health = new Map<string, ServiceHealth>();
  for (const { name, healthCheck } of rows) {
    if (healthCheck !== undefined) health.set(`${name.namespace}/${name.name}`, healthCheck);
  }
  return health;
}
