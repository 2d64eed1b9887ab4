import type { BackendMetric, IPFamily } from "@turnout/core";
import type { Counter, Gauge } from "prom-client";
import type { MetricSet } from "./metric-set.ts";

/** The numbers that backends count themselves, read when somebody asks for metrics. */
export class BackendMetrics {
  readonly #set: MetricSet;
  readonly #sources = new Map<IPFamily, () => readonly BackendMetric[]>();
  readonly #known = new Map<string, Counter | Gauge>();

  constructor(set: MetricSet) {
    this.#set = set;
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
      metric = this.#set[kind](name, help, [...Object.keys(labels), "ip_family"]);
      this.#known.set(name, metric);
    }
    return metric;
  }
}
