import type { BackendMetric, IPFamily } from "@turnout/core";
import { Counter, Gauge } from "prom-client";
import type { Registry } from "prom-client";

/** The numbers that backends count themselves, read when somebody asks for metrics. */
export class BackendMetrics {
  readonly #registry: Registry;
  readonly #sources = new Map<IPFamily, () => readonly BackendMetric[]>();
  readonly #known = new Map<string, Counter | Gauge>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Read a family's numbers from here from now on. */
  watch(family: IPFamily, read: () => readonly BackendMetric[]): void {
    this.#sources.set(family, read);
  }

  /** Bring all numbers up to date. */
  collect(): void {
    for (const metric of this.#known.values()) metric.reset();
    for (const [ip_family, read] of this.#sources) {
      for (const told of read()) this.#metric(told).inc({ ...told.labels, ip_family }, told.value);
    }
  }

  #metric({ name, help, kind, labels = {} }: BackendMetric): Counter | Gauge {
    let metric = this.#known.get(name);
    if (metric === undefined) {
      const configuration = { name, help, labelNames: [...Object.keys(labels), "ip_family"], registers: [this.#registry] };
      metric = kind === "counter" ? new Counter(configuration) : new Gauge(configuration);
      this.#known.set(name, metric);
    }
    return metric;
  }
}
