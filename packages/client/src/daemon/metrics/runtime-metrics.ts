import { PerformanceObserver } from "node:perf_hooks";
import { getHeapStatistics, type HeapInfo } from "node:v8";
import type { MetricSet } from "./metric-set.ts";
import { processTimeMs } from "./process-time.ts";

/** Go's names for what V8's heap has too. The others of `go_memstats_*` are about Go's allocator; docs/operations.md lists them. */
const OF_HEAP: readonly (readonly [name: string, help: string, read: (heap: HeapInfo) => number])[] = [
  [
    "alloc_bytes",
    "Number of bytes allocated in heap and currently in use. Equals to /memory/classes/heap/objects:bytes; here of V8's heap.",
    (heap) => heap.used_heap_size,
  ],
  [
    "heap_alloc_bytes",
    "Number of heap bytes allocated and currently in use, same as go_memstats_alloc_bytes. Equals to /memory/classes/heap/objects:bytes; here of V8's heap.",
    (heap) => heap.used_heap_size,
  ],
  [
    "heap_inuse_bytes",
    "Number of heap bytes that are in use. Equals to /memory/classes/heap/objects:bytes + /memory/classes/heap/unused:bytes; here of V8's heap.",
    (heap) => heap.used_heap_size,
  ],
  [
    "heap_idle_bytes",
    "Number of heap bytes waiting to be used. Equals to /memory/classes/heap/released:bytes + /memory/classes/heap/free:bytes; here of V8's heap.",
    (heap) => heap.total_heap_size - heap.used_heap_size,
  ],
  [
    "heap_sys_bytes",
    "Number of heap bytes obtained from system. Equals to /memory/classes/heap/objects:bytes + /memory/classes/heap/unused:bytes + /memory/classes/heap/released:bytes + /memory/classes/heap/free:bytes; here V8's heap.",
    (heap) => heap.total_heap_size,
  ],
  [
    "sys_bytes",
    "Number of bytes obtained from system. Equals to /memory/classes/total:byte; here the process's resident memory, code included.",
    () => process.memoryUsage.rss(),
  ],
];

/**
 * Register what dashboards of Go programs show and Node has a counterpart of, under Go's names. Each HELP says what it is here.
 *
 * Edges: pauses are noted until the set is closed; quantiles are of the last ten minutes.
 * @source prometheus/client_golang go_collector.go
 */
export function registerRuntime(set: MetricSet): void {
  set.computed("gauge", "go_info", "Information about the Go environment; here the version is Node's.", ["version"], () => [
    [{ version: process.version }, 1],
  ]);
  set.computed("gauge", "go_goroutines", "Number of goroutines that currently exist; here what the event loop waits for.", [], () => [
    [{}, process.getActiveResourcesInfo().length],
  ]);
  for (const [name, help, read] of OF_HEAP) {
    set.computed("gauge", `go_memstats_${name}`, help, [], () => [[{}, read(getHeapStatistics())]]);
  }
  const pauses = set.summary(
    "go_gc_duration_seconds",
    "A summary of the wall-time pause (stop-the-world) duration in garbage collection cycles; here V8's.",
    [0, 0.25, 0.5, 0.75, 1],
  );
  let lastMs: number | undefined;
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      pauses.observe(duration / 1000);
      lastMs = performance.timeOrigin + startTime + duration;
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  set.onClose(() => observer.disconnect());
  const help = "Number of seconds since 1970 of last garbage collection; here V8's, 0 before the first.";
  set.computed("gauge", "go_memstats_last_gc_time_seconds", help, [], () => [
    [{}, lastMs === undefined ? 0 : processTimeMs(lastMs) / 1000],
  ]);
}
