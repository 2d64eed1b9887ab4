import type { BackendMetric } from "@turnout/core/backend";

/**
 * Name the numbers of a backend: kube-proxy's names.
 * @param failures plans of which a transaction failed
 * @param cleanupFailures idle chains times tries that could not delete them
 * @source kube-proxy pkg/proxy/metrics/metrics.go
 */
export function nftMetrics(failures: number, cleanupFailures: number): readonly BackendMetric[] {
  const counter = (what: string, value: number): BackendMetric => ({
    name: `kubeproxy_sync_proxy_rules_nftables_${what}_failures_total`,
    help: `[ALPHA] Cumulative proxy nftables ${what} failures`,
    kind: "counter",
    value,
  });
  return [counter("sync", failures), counter("cleanup", cleanupFailures)];
}
