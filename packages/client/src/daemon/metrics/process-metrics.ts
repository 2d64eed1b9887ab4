import { monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { readdirSync, readFileSync } from "node:fs";
import { getHeapStatistics } from "node:v8";
import type { HeapInfo } from "node:v8";
import { processTimeMs } from "./process-time.ts";
import { MetricSet } from "./metric-set.ts";
import type { Readings } from "./metric-set.ts";

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
function registerRuntime(set: MetricSet): void {
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

/** Greatest value of an address space that Go's clients print for "unlimited": 2^64 - 1. */
const UNLIMITED = 2 ** 64;

/**
 * Read a field of a file with lines like `VmSize:   123 kB` or `Threads: 7`. Pure.
 * @returns the first number after the name, times 1024 where its unit is kB
 */
function statusNumber(text: string, name: string): number | undefined {
  const found = new RegExp(`^${name}:\\s+(\\d+)( kB)?`, "m").exec(text);
  return found === null ? undefined : Number(found[1]) * (found[2] === undefined ? 1 : 1024);
}

/** Read a soft limit out of /proc/self/limits, e.g. `Max open files`. Pure. Edges: `unlimited` is 2^64 - 1, as in Go's clients. */
function softLimit(text: string, name: string): number | undefined {
  const found = new RegExp(`^${name}\\s+(\\d+|unlimited)`, "m").exec(text)?.[1];
  return found === undefined ? undefined : found === "unlimited" ? UNLIMITED : Number(found);
}

/** Read a counter out of /proc/self/net/netstat, where a line of names is followed by a line of values. Pure. */
function netstatNumber(text: string, group: string, name: string): number | undefined {
  const [names, values] = text.split("\n").filter((line) => line.startsWith(`${group}: `));
  const place = names?.split(" ").indexOf(name) ?? -1;
  const value = place < 0 ? undefined : values?.split(" ")[place];
  return value === undefined ? undefined : Number(value);
}

/** Numbers of this process that Linux tells, each read when it is asked for; undefined where there is no /proc, or it says nothing of the kind. */
const PROC_NUMBERS = {
  openFiles: (): number | undefined => absent(() => readdirSync("/proc/self/fd").length),
  openFilesMax: (): number | undefined => softLimit(textOf("limits"), "Max open files"),
  virtualBytes: (): number | undefined => statusNumber(textOf("status"), "VmSize"),
  virtualBytesMax: (): number | undefined => softLimit(textOf("limits"), "Max address space"),
  threads: (): number | undefined => statusNumber(textOf("status"), "Threads"),
  receivedBytes: (): number | undefined => netstatNumber(textOf("net/netstat"), "IpExt", "InOctets"),
  sentBytes: (): number | undefined => netstatNumber(textOf("net/netstat"), "IpExt", "OutOctets"),
} as const;

function textOf(name: string): string {
  return absent(() => readFileSync(`/proc/self/${name}`, "utf8")) ?? "";
}

/** What can't be read isn't told: on Windows there is no /proc, and a container may hide parts of it. */
function absent<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}

/** How often the event loop is probed; the histogram holds this on top of every delay. */
const LOOP_PROBE_MS = 50;

/** Register how late the event loop is. Edges: measures until the set is closed. */
function registerEventLoop(set: MetricSet): void {
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

/** Metrics that Linux alone tells, with the words of Go's client. @source prometheus/client_golang process_collector.go */
const OF_LINUX: readonly (readonly ["gauge" | "counter", name: string, help: string, () => number | undefined])[] = [
  ["gauge", "process_open_fds", "Number of open file descriptors.", PROC_NUMBERS.openFiles],
  ["gauge", "process_max_fds", "Maximum number of open file descriptors.", PROC_NUMBERS.openFilesMax],
  ["gauge", "process_virtual_memory_bytes", "Virtual memory size in bytes.", PROC_NUMBERS.virtualBytes],
  ["gauge", "process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", PROC_NUMBERS.virtualBytesMax],
  [
    "counter",
    "process_network_receive_bytes_total",
    "Number of bytes received by the process over the network.",
    PROC_NUMBERS.receivedBytes,
  ],
  ["counter", "process_network_transmit_bytes_total", "Number of bytes sent by the process over the network.", PROC_NUMBERS.sentBytes],
  ["gauge", "go_threads", "Number of OS threads created.", PROC_NUMBERS.threads],
];

/**
 * Make a set of metrics with what dashboards expect of any process, under the names of Prometheus' Go client.
 *
 * Edges: a scrape reads a few files of /proc; nothing is done between scrapes, but for a note of each garbage collection.
 */
export function processMetrics(): MetricSet {
  const set = new MetricSet();
  const register = (name: string, help: string, read: () => number, type: "gauge" | "counter" = "gauge"): void =>
    set.computed(type, name, help, [], () => [[{}, read()]]);
  register("process_resident_memory_bytes", "Resident memory size in bytes.", () => process.memoryUsage.rss());
  register("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", () => processTimeMs() / 1000);
  const cpuSeconds = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  register("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", cpuSeconds, "counter");
  for (const [type, name, help, read] of OF_LINUX) {
    set.computed(type, name, help, [], () => {
      const value = read();
      return value === undefined ? [] : [[{}, value]];
    });
  }
  register("nodejs_heap_size_used_bytes", "Process heap size used in bytes", () => process.memoryUsage().heapUsed);
  register("nodejs_external_memory_bytes", "Memory of objects bound to JavaScript ones, in bytes", () => process.memoryUsage().external);
  registerRuntime(set);
  registerEventLoop(set);
  return set;
}
