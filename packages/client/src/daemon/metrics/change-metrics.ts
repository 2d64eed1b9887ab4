import type { ObjectKind } from "@turnout/core";
import type { FamilyMetrics } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/** Hears of each API object that came or went; with a sync of any family that deferred nothing none is pending any more. */
export interface ChangeMetrics extends FamilyMetrics {
  changed(kind: ObjectKind): void;
}

/** Register how many Services and EndpointSlices changed, and how many of that since the last sync. */
export function registerChanges(set: MetricSet): ChangeMetrics {
  const total = (kind: string, what: string) =>
    set.counter(`kubeproxy_sync_proxy_rules_${kind}_changes_total`, `Cumulative ${what} changes seen`, []);
  const pending = (kind: string, what: string) =>
    set.gauge(`kubeproxy_sync_proxy_rules_${kind}_changes_pending`, `${what} changes since the last sync`, []);
  const services = { total: total("service", "service"), pending: pending("service", "Service") };
  const endpoints = { total: total("endpoint", "endpoint slice"), pending: pending("endpoint", "Endpoint slice") };
  return {
    changed: (kind) => {
      const counts = kind === "Service" ? services : kind === "EndpointSlice" ? endpoints : undefined;
      counts?.total.inc();
      counts?.pending.inc();
    },
    synced: ({ deferred }) => {
      // What was deferred is waiting yet.
      if (deferred > 0) return;
      services.pending.set(0);
      endpoints.pending.set(0);
    },
  };
}
