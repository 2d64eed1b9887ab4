import { wallMs, type ClockReading, type ObjectKind } from "@turnout/core";
import type { MetricSet } from "./metric-set.ts";

/**
 * Register when the API server was last heard of for each kind of object, and get what is told of it.
 *
 * Edges: it sends a bookmark each minute where nothing changes, so an old time is a watch that is stuck. Sources without an API server tell nothing.
 */
export function registerHeard(set: MetricSet, clock: ClockReading): (kind: ObjectKind) => void {
  const heardMs = new Map<ObjectKind, number>();
  set.computed(
    "gauge",
    "turnout_source_last_heard_timestamp_seconds",
    "When the API server last sent a list, a change or a bookmark of this kind of objects",
    ["kind"],
    () => [...heardMs].map(([kind, atMs]) => [{ kind }, wallMs(clock, atMs) / 1000] as const),
  );
  return (kind) => void heardMs.set(kind, clock.nowMs());
}
