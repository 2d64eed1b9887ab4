import { FAMILY, type FamilyMetrics } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/** Register how many kernel objects are in force, were written and removed, and what the host refuses. */
export function registerObjects(set: MetricSet): FamilyMetrics {
  const objects = set.gauge("turnout_objects", "Kernel objects in force", FAMILY);
  const put = set.counter("turnout_objects_put_total", "Kernel objects written", FAMILY);
  const removed = set.counter("turnout_objects_removed_total", "Kernel objects removed", FAMILY);
  const repaired = set.counter("turnout_objects_repaired_total", "Kernel objects that others had changed, found by comparing", FAMILY);
  const quarantined = set.gauge("turnout_quarantined_rows", "Service ports that the host refuses, wholly or in part", FAMILY);
  const failed = set.gauge("turnout_failed_objects", "Kernel objects that the host refuses by themselves", FAMILY);
  return {
    started: (family) => {
      const labels = { ip_family: family };
      for (const counter of [put, removed, repaired]) counter.inc(labels, 0);
      for (const gauge of [quarantined, failed]) gauge.set(labels, 0);
    },
    synced: (event) => {
      const labels = { ip_family: event.family };
      objects.set(labels, event.objects);
      put.inc(labels, event.put);
      removed.inc(labels, event.removed);
      repaired.inc(labels, event.drifted);
    },
    quarantined: (event) => {
      quarantined.set({ ip_family: event.family }, event.rows.length);
      failed.set({ ip_family: event.family }, event.objects.length);
    },
  };
}
