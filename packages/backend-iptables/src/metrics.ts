import type { BackendMetric } from "@turnout/core/backend";
import type { LockWaits } from "@turnout/host/iptables";
import type { ApplyMetrics } from "./apply.ts";

/**
 * Name the numbers of a backend: kube-proxy's names first.
 * @source kube-proxy pkg/proxy/metrics/metrics.go
 */
export function iptablesMetrics({ failures, partialFailures, total, last }: ApplyMetrics, waits: LockWaits): readonly BackendMetric[] {
  const perTable = (name: string, help: string, counts: ApplyMetrics["total"]): readonly BackendMetric[] =>
    (["filter", "nat"] as const).map((table) => ({ name, help, kind: "gauge", labels: { table }, value: counts[table] }));
  const counter = (name: string, help: string, value: number): BackendMetric => ({ name, help, kind: "counter", value });
  return [
    counter("kubeproxy_sync_proxy_rules_iptables_restore_failures_total", "[ALPHA] Cumulative proxy iptables restore failures", failures),
    counter(
      "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total",
      "[ALPHA] Cumulative proxy iptables partial restore failures",
      partialFailures,
    ),
    ...perTable("kubeproxy_sync_proxy_rules_iptables_total", "[ALPHA] Total number of iptables rules owned by kube-proxy", total),
    ...perTable("kubeproxy_sync_proxy_rules_iptables_last", "[ALPHA] Number of iptables rules written by kube-proxy in last sync", last),
    counter("turnout_iptables_lock_waits_total", "Calls of iptables that had to wait a second or more for the xtables lock", waits.count),
    counter("turnout_iptables_lock_wait_seconds_total", "Time spent in tries that did not get the xtables lock", waits.totalMs / 1000),
  ];
}
