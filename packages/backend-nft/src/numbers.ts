import type { BackendMetric } from "@turnout/core/backend";

/**
 * Name the numbers of a backend: kube-proxy's names.
 * @param failures plans of which a transaction failed
 * @source kube-proxy pkg/proxy/metrics/metrics.go
 */
export function nftMetrics(failures: number): readonly BackendMetric[] {
  const name = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total";
  return [{ name, help: "Cumulative proxy nftables sync failures", kind: "counter", value: failures }];
}
