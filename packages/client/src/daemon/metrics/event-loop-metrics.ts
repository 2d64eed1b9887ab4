import { monitorEventLoopDelay } from "node:perf_hooks";
import type { MetricSet, Readings } from "./metric-set.ts";

/** How often the event loop is probed; the histogram holds this on top of every delay. */
const LOOP_PROBE_MS = 50;

/** Register how late the event loop is. Edges: measures until the set is closed. */
export function registerEventLoop(set: MetricSet): void {
  const delays = monitorEventLoopDelay({ resolution: LOOP_PROBE_MS });
  delays.enable();
  set.onClose(() => delays.disable());
  function* lag(): Readings<"quantile"> {
    const seconds = (ns: number): number => (delays.count === 0 ? 0 : Math.max(0, ns / 1e9 - LOOP_PROBE_MS / 1e3));
    yield [{ quantile: "0.99" }, seconds(delays.percentile(99))];
    yield [{ quantile: "1" }, seconds(delays.max)];
    delays.reset();
  }
  set.computed("gauge", "turnout_event_loop_lag_seconds", "How late the event loop was since the last scrape", ["quantile"], lag);
}
