import { Counter, Gauge, type Registry } from "prom-client";

/**
 * Register what dashboards expect of any process, under Prometheus' standard names.
 *
 * Edges: prom-client's own default set would also watch every garbage collection and read /proc on each scrape; these
 * few cost nothing until somebody scrapes.
 */
export function registerProcessMetrics(registry: Registry): void {
  const register = (name: string, help: string, read: () => number): void => {
    const gauge: Gauge = new Gauge({ name, help, registers: [registry], collect: () => gauge.set(read()) });
  };
  register("process_resident_memory_bytes", "Resident memory size in bytes", () => process.memoryUsage.rss());
  register("process_start_time_seconds", "Start time of the process since the unix epoch in seconds", () => performance.timeOrigin / 1000);
  const cpu: Counter = new Counter({
    name: "process_cpu_seconds_total",
    help: "Total user and system CPU time spent in seconds",
    registers: [registry],
    collect: () => {
      const { user, system } = process.cpuUsage();
      cpu.reset();
      cpu.inc((user + system) / 1e6);
    },
  });
  register("nodejs_heap_size_used_bytes", "Process heap size used in bytes", () => process.memoryUsage().heapUsed);
  register("nodejs_external_memory_bytes", "Memory of objects bound to JavaScript ones, in bytes", () => process.memoryUsage().external);
}
