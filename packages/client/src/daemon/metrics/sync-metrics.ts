import { ERROR_CODES } from "@turnout/core";
import { PROGRAMMING_BUCKETS, SYNC_BUCKETS } from "./buckets.ts";
import { FAMILY, type FamilyMetrics } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/** Register how long syncs take, when they were, and why they failed. */
export function registerSyncs(set: MetricSet): FamilyMetrics {
  const histogram = (name: string, help: string) => set.histogram(name, help, FAMILY, SYNC_BUCKETS);
  const duration = histogram("kubeproxy_sync_proxy_rules_duration_seconds", "[ALPHA] SyncProxyRules latency in seconds");
  const full = histogram("kubeproxy_sync_full_proxy_rules_duration_seconds", "[ALPHA] SyncProxyRules latency in seconds for full resyncs");
  const partial = histogram(
    "kubeproxy_sync_partial_proxy_rules_duration_seconds",
    "[ALPHA] SyncProxyRules latency in seconds for partial resyncs",
  );
  const lastSync = set.gauge(
    "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
    "[ALPHA] The last time proxy rules were successfully synced",
    FAMILY,
  );
  const lastQueued = set.gauge(
    "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
    "[ALPHA] The last time a sync of proxy rules was queued",
    FAMILY,
  );
  const programming = set.histogram(
    "kubeproxy_network_programming_duration_seconds",
    "[ALPHA] In Cluster Network Programming Latency in seconds",
    FAMILY,
    PROGRAMMING_BUCKETS,
  );
  const failures = set.counter("turnout_sync_failures_total", "Failed syncs by error code", [...FAMILY, "code"]);
  return {
    // From the start: an alert on growth does not see a series that is born with its first count.
    started: (family) => {
      for (const code of ERROR_CODES) failures.inc({ ip_family: family, code }, 0);
    },
    queued: ({ family, atMs }) => lastQueued.set({ ip_family: family }, atMs / 1000),
    synced: (event) => {
      const labels = { ip_family: event.family };
      duration.observe(labels, event.durationMs / 1000);
      (event.full ? full : partial).observe(labels, event.durationMs / 1000);
      // What was deferred is waiting yet.
      if (event.deferred === 0) lastSync.set(labels, event.atMs / 1000);
      // A trigger is told by another machine's clock, which may be ahead of ours.
      for (const triggerMs of event.triggersMs) programming.observe(labels, Math.max(0, event.atMs - triggerMs) / 1000);
    },
    failed: (event) => {
      duration.observe({ ip_family: event.family }, event.durationMs / 1000);
      failures.inc({ ip_family: event.family, code: event.error.code });
    },
  };
}
