import { processTimeMs } from "./process-time.ts";
import { PROC_NUMBERS } from "./proc-files.ts";
import { registerEventLoop } from "./event-loop-metrics.ts";
import { MetricSet } from "./metric-set.ts";
import { registerRuntime } from "./runtime-metrics.ts";

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
