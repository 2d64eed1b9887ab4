import { ERROR_CODES, wallMs, type ClockReading, type IPFamily } from "@turnout/core";
import { PROGRAMMING_BUCKETS, SYNC_BUCKETS } from "./buckets.ts";
import { FAMILY, type FamilyMetrics } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/**
 * Register how long syncs take, when they were, and why they failed.
 *
 * Edges: a trigger is another machine's time. Where it is in the future, or before this process began, one of the clocks is wrong or the change was not made
 * here: nothing is measured.
 */
export function registerSyncs(set: MetricSet, clock: ClockReading): FamilyMetrics {
  const startedMs = clock.nowMs();
  const histogram = (name: string, help: string) => set.histogram(name, help, FAMILY, SYNC_BUCKETS);
  const duration = histogram("kubeproxy_sync_proxy_rules_duration_seconds", "[ALPHA] SyncProxyRules latency in seconds");
  const full = histogram("kubeproxy_sync_full_proxy_rules_duration_seconds", "[ALPHA] SyncProxyRules latency in seconds for full resyncs");
  const partial = histogram(
    "kubeproxy_sync_partial_proxy_rules_duration_seconds",
    "[ALPHA] SyncProxyRules latency in seconds for partial resyncs",
  );
  const lastSync = registerTime(
    set,
    clock,
    "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
    "[ALPHA] The last time proxy rules were successfully synced",
  );
  const lastQueued = registerTime(
    set,
    clock,
    "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
    "[ALPHA] The last time a sync of proxy rules was queued",
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
    queued: ({ family, atMs }) => void lastQueued.set(family, atMs),
    synced: (event) => {
      const labels = { ip_family: event.family };
      duration.observe(labels, event.durationMs / 1000);
      (event.full ? full : partial).observe(labels, event.durationMs / 1000);
      // What came until then is in force. What was deferred is waiting yet.
      if (event.deferred === 0) lastSync.set(event.family, event.waitingSinceMs ?? event.atMs);
      const [syncedMs, longestMs] = [wallMs(clock, event.atMs), event.atMs - startedMs];
      const tookMs = event.triggersMs.map((triggerMs) => syncedMs - triggerMs).filter((ms) => ms >= 0 && ms <= longestMs);
      for (const ms of tookMs) programming.observe(labels, ms / 1000);
    },
    failed: (event) => {
      duration.observe({ ip_family: event.family }, event.durationMs / 1000);
      failures.inc({ ip_family: event.family, code: event.error.code });
    },
  };
}

/** Register a time of each family; it is kept by the clock that is never set, and given as the wall clock is at the scrape. */
function registerTime(set: MetricSet, clock: ClockReading, name: string, help: string): Map<IPFamily, number> {
  const timesMs = new Map<IPFamily, number>();
  set.computed("gauge", name, help, FAMILY, () =>
    [...timesMs].map(([family, atMs]) => [{ ip_family: family }, wallMs(clock, atMs) / 1000] as const),
  );
  return timesMs;
}
