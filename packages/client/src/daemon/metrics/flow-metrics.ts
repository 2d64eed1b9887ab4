import { SYNC_BUCKETS } from "./buckets.ts";
import { FAMILY, type FamilyMetrics } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/** Register how many conntrack flows were forgotten, and how long that took. */
export function registerFlows(set: MetricSet): FamilyMetrics {
  const duration = set.histogram(
    "kubeproxy_conntrack_reconciler_sync_duration_seconds",
    "[ALPHA] ReconcileConntrackFlowsLatency latency in seconds",
    FAMILY,
    SYNC_BUCKETS,
  );
  const deleted = set.counter(
    "kubeproxy_conntrack_reconciler_deleted_entries_total",
    "[ALPHA] Cumulative conntrack flows deleted by conntrack reconciler",
    FAMILY,
  );
  return {
    started: (family) => deleted.inc({ ip_family: family }, 0),
    flowsForgotten: ({ family, count, durationMs }) => {
      duration.observe({ ip_family: family }, durationMs / 1000);
      deleted.inc({ ip_family: family }, count);
    },
  };
}
