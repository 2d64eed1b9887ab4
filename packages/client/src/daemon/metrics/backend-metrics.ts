import type { BackendMetric, IPFamily } from "@turnout/core";
import type { Counter, Gauge } from "prom-client";
import type { MetricSet } from "./metric-set.ts";

/** Reads the numbers of one family's backend. */
export type ReadBackend = () => readonly BackendMetric[] | Promise<readonly BackendMetric[]>;

/** The numbers that backends count themselves, read when somebody asks for metrics. */
export class BackendMetrics {
  readonly #set: MetricSet;
  readonly #sources = new Map<IPFamily, ReadBackend>();
  readonly #known = new Map<string, Counter | Gauge>();

  constructor(set: MetricSet) {
    this.#set = set;
  }

  /** Read a family's numbers from here from now on. */
  watch(family: IPFamily, read: ReadBackend): void {
    this.#sources.set(family, read);
  }

  /** Bring all numbers up to date. Edges: what fails is thrown, and the numbers stay as they were. */
  async collect(): Promise<void> {
    const all = await Promise.all([...this.#sources].map(async ([family, read]) => [family, await read()] as const));
    for (const metric of this.#known.values()) metric.reset();
    const ofHost = new Set<string>();
    for (const [ip_family, reported] of all) {
      for (const metric of reported) {
        const key = JSON.stringify([metric.name, metric.labels]);
        if (metric.isOfHost === true && ofHost.has(key)) continue;
        ofHost.add(key);
        this.#metric(metric).inc({ ...metric.labels, ...(metric.isOfHost === true ? {} : { ip_family }) }, metric.value);
      }
    }
  }

  #metric({ name, help, kind, isOfHost, labels = {} }: BackendMetric): Counter | Gauge {
    let metric = this.#known.get(name);
    if (metric === undefined) {
      metric = this.#set[kind](name, help, [...Object.keys(labels), ...(isOfHost === true ? [] : ["ip_family"])]);
      this.#known.set(name, metric);
    }
    return metric;
  }
}
