import type { IPFamily, ObjectKind } from "@turnout/core";
import type { FamilyMetrics } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/** Hears of each API object that came or went; with a sync of any family that deferred nothing none is pending any more. */
export interface ChangeMetrics extends FamilyMetrics {
  changed(kind: ObjectKind): void;
}

/**
 * Register how many Services and EndpointSlices changed, and how many of that since the last sync.
 *
 * Edges: a Service counts once for each family that is run, as in kube-proxy, where each family's tracker takes it. An
 * EndpointSlice has one family, and counts once.
 * @source kube-proxy pkg/proxy/servicechangetracker.go, endpointschangetracker.go, metaproxier
 */
export function registerChanges(set: MetricSet): ChangeMetrics {
  const families = new Set<IPFamily>();
  const pending = (kind: "service" | "endpoint", what: string) =>
    set.gauge(`kubeproxy_sync_proxy_rules_${kind}_changes_pending`, `[ALPHA] Pending proxy rules ${what} changes`, []);
  const counts = { service: 0, endpoint: 0 };
  const total = (kind: "service" | "endpoint", what: string, times: () => number): void =>
    set.computed(
      "counter",
      `kubeproxy_sync_proxy_rules_${kind}_changes_total`,
      `[ALPHA] Cumulative proxy rules ${what} changes`,
      [],
      () => [[{}, counts[kind] * times()]],
    );
  // Services may be heard of before the first family starts.
  total("service", "Service", () => Math.max(1, families.size));
  total("endpoint", "Endpoint", () => 1);
  const waiting = { service: pending("service", "Service"), endpoint: pending("endpoint", "Endpoint") };
  return {
    changed: (kind) => {
      const counted = kind === "Service" ? "service" : kind === "EndpointSlice" ? "endpoint" : undefined;
      if (counted === undefined) return;
      counts[counted] += 1;
      waiting[counted].inc();
    },
    started: (family) => void families.add(family),
    synced: ({ deferred }) => {
      // What was deferred is waiting yet.
      if (deferred > 0) return;
      waiting.service.set(0);
      waiting.endpoint.set(0);
    },
  };
}
