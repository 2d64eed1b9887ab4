import { MetricSet } from "./metric-set.ts";

/**
 * Make a set of metrics with what dashboards expect of any process, under Prometheus' standard names.
 *
 * Edges: prom-client's own default set would also watch every garbage collection and read /proc on each scrape; these
 * few cost nothing until somebody scrapes.
 */
export function processMetrics(): MetricSet {
  const set = new MetricSet();
  const register = (name: string, help: string, read: () => number, type: "gauge" | "counter" = "gauge"): void =>
    set.computed(type, name, help, [], () => [[{}, read()]]);
  register("process_resident_memory_bytes", "Resident memory size in bytes", () => process.memoryUsage.rss());
  register("process_start_time_seconds", "Start time of the process since the unix epoch in seconds", () => performance.timeOrigin / 1000);
  const cpuSeconds = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  register("process_cpu_seconds_total", "Total user and system CPU time spent in seconds", cpuSeconds, "counter");
  register("nodejs_heap_size_used_bytes", "Process heap size used in bytes", () => process.memoryUsage().heapUsed);
  register("nodejs_external_memory_bytes", "Memory of objects bound to JavaScript ones, in bytes", () => process.memoryUsage().external);
  return set;
}
