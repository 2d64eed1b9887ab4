import type { IPFamily } from "@turnout/core";
import { FAMILY, type FamilyMetrics } from "./family-metrics.ts";
import type { MetricSet } from "./metric-set.ts";

/** What counts other proxies. */
export interface OtherProxyMetrics extends FamilyMetrics {
  readonly note: (family: IPFamily, count: number) => void;
}

/** Register in how many dataplanes other service proxies have rules in force. */
export function registerOthers(set: MetricSet): OtherProxyMetrics {
  const others = set.gauge("turnout_other_proxies", "Dataplanes in which another service proxy has rules in force", FAMILY);
  const note = (family: IPFamily, count: number): void => others.set({ ip_family: family }, count);
  return { note, started: (family) => note(family, 0) };
}
