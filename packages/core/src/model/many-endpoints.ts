import type { ServicePort } from "./rows.ts";

/** @source kube-proxy pkg/proxy/iptables/proxier.go largeClusterEndpointsThreshold */
const MANY = 1_000;

/** Tell whether so many endpoints are too many for what only people read. Pure. */
export function isManyEndpoints(count: number): boolean {
  return count > MANY;
}

/** Tell it of the endpoints of all these rows, in whatever condition they are. Pure; costs no more than rows with that many. */
export function haveManyEndpoints(rows: Iterable<ServicePort>): boolean {
  let count = 0;
  for (const { endpoints } of rows) {
    count += endpoints.length;
    if (isManyEndpoints(count)) return true;
  }
  return false;
}
