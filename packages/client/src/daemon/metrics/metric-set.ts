import { Counter, Gauge, Histogram, Registry, Summary } from "prom-client";
import type { Reply } from "../health/health.ts";

/** Values of a metric by their labels. */
export type Readings<L extends string> = Iterable<readonly [labels: Readonly<Record<L, string>>, value: number]>;

/** Over how long the quantiles of a summary are, and in how many pieces that is forgotten. */
const SUMMARY_SECONDS = 600;
const SUMMARY_PIECES = 5;

/** The metrics of one process in Prometheus' text format. */
export class MetricSet {
  readonly #registry: Registry = new Registry();
  readonly #closers: (() => void)[] = [];

  /** What a scrape is answered with. */
  async reply(): Promise<Reply> {
    return { status: 200, headers: { "Content-Type": this.#registry.contentType }, body: await this.#registry.metrics() };
  }

  /** The HELP text of each metric. */
  helps(): readonly string[] {
    return this.#registry.getMetricsAsArray().map((metric) => (metric as unknown as { readonly help: string }).help);
  }

  /** What is to be done when measuring ends. */
  onClose(end: () => void): void {
    this.#closers.push(end);
  }

  /** Stop measuring. */
  close(): void {
    for (const end of this.#closers.splice(0)) end();
  }

  /** A summary without labels: quantiles of the last ten minutes, sum and count of all time. */
  summary(name: string, help: string, percentiles: number[]): Summary {
    const window = { maxAgeSeconds: SUMMARY_SECONDS, ageBuckets: SUMMARY_PIECES };
    return new Summary({ name, help, percentiles, registers: [this.#registry], ...window });
  }

  histogram<L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]): Histogram<L> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }

  gauge<L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }

  counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  /** A metric whose values are asked for when somebody scrapes; a counter's only grow. */
  computed<L extends string>(
    type: "gauge" | "counter",
    name: string,
    help: string,
    labelNames: readonly L[],
    read: () => Readings<L>,
  ): void {
    const common = { name, help, labelNames, registers: [this.#registry] };
    if (type === "gauge") {
      const gauge: Gauge<L> = new Gauge({
        ...common,
        collect: () => {
          clear(gauge, labelNames);
          for (const [labels, value] of read()) gauge.set(labels, value);
        },
      });
      return;
    }
    const counter: Counter<L> = new Counter({
      ...common,
      collect: () => {
        clear(counter, labelNames);
        for (const [labels, value] of read()) counter.inc(labels, value);
      },
    });
  }
}

/** Forget all values. prom-client's reset leaves a metric without labels at 0, which would be told where nothing is known. */
function clear(metric: Gauge | Counter, labelNames: readonly string[]): void {
  metric.reset();
  if (labelNames.length === 0) metric.remove();
}
