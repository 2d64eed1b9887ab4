import type { IPFamily, ServicePort } from "@turnout/core";
import type { MetricSet, Readings } from "./metric-set.ts";

/** Count the rows that have a Local policy and endpoints, but none here. @source kube-proxy pkg/proxy/metrics/metrics.go; KEP-2086 */
export function countNoLocalEndpoints(rows: Iterable<ServicePort>): { readonly internal: number; readonly external: number } {
  let internal = 0;
  let external = 0;
  for (const row of rows) {
    if (!(row.internalLocal || row.externalLocal) || row.local.length > 0) continue;
    if (!row.endpoints.some((endpoint) => endpoint.ready || (endpoint.serving && endpoint.terminating))) continue;
    if (row.internalLocal) internal += 1;
    if (row.externalLocal) external += 1;
  }
  return { internal, external };
}

/** Register what is counted of rows when somebody asks for metrics, and get the way to say where a family's are read from. */
export function registerRows(set: MetricSet): (family: IPFamily, rows: () => Iterable<ServicePort>) => void {
  const sources = new Map<IPFamily, () => Iterable<ServicePort>>();
  function* noLocal(): Readings<"traffic_policy" | "ip_family"> {
    for (const [ip_family, read] of sources) {
      const { internal, external } = countNoLocalEndpoints(read());
      yield [{ traffic_policy: "internal", ip_family }, internal];
      yield [{ traffic_policy: "external", ip_family }, external];
    }
  }
  const help = "[ALPHA] Number of services with a Local traffic policy and no endpoints";
  set.computed("gauge", "kubeproxy_sync_proxy_rules_no_local_endpoints_total", help, ["traffic_policy", "ip_family"], noLocal);
  return (family, rows) => void sources.set(family, rows);
}
