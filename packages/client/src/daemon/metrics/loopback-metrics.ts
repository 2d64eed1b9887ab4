import type { IPFamily } from "@turnout/core";
import { FAMILY } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/** What counts the node ports that this process answers on loopback. */
export interface LoopbackMetrics {
  readonly listeners: (family: IPFamily, count: number) => void;
  readonly failed: (family: IPFamily) => void;
}

/**
 * Register kube-proxy's metrics of node ports on loopback; here they are of every backend.
 * @source kube-proxy pkg/proxy/metrics/metrics.go LocalhostNodePortListeners
 */
export function registerLoopback(set: MetricSet): LoopbackMetrics {
  const listeners = set.gauge(
    "kubeproxy_nftables_localhost_nodeport_listeners",
    "[ALPHA] Number of active localhost NodePort listeners of this process.",
    FAMILY,
  );
  const failures = set.counter(
    "kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total",
    "[ALPHA] Number of localhost NodePort listener creation failures.",
    FAMILY,
  );
  return {
    listeners: (family, count) => {
      listeners.set({ ip_family: family }, count);
      failures.inc({ ip_family: family }, 0);
    },
    failed: (family) => failures.inc({ ip_family: family }),
  };
}
