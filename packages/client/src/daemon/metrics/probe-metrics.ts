import type { MetricSet } from "./metric-set.ts";

/** Register how the health server answered, and get the function that counts one answer. */
export function registerProbes(set: MetricSet): (path: "healthz" | "livez", code: number) => void {
  const counters = {
    healthz: set.counter("kubeproxy_proxy_healthz_total", "[ALPHA] Cumulative proxy healthz HTTP status", ["code"]),
    livez: set.counter("kubeproxy_proxy_livez_total", "[ALPHA] Cumulative proxy livez HTTP status", ["code"]),
  };
  return (path, code) => counters[path].inc({ code: String(code) });
}
