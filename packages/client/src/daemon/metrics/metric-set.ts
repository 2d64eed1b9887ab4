import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Reply } from "../health/health.ts";

/** How often the event loop is probed; the histogram holds this on top of every delay. */
const LOOP_PROBE_MS = 50;

/** Values of a metric by their labels. */
export type Readings<L extends string> = Iterable<readonly [labels: Readonly<Record<L, string>>, value: number]>;

/**
 * The metrics of one process in Prometheus' text format.
 *
 * Edges: measures the event loop's lag until it is closed.
 */
export class MetricSet {
  readonly #registry: Registry = new Registry();
  readonly #loopDelay: ReturnType<typeof monitorEventLoopDelay> = monitorEventLoopDelay({ resolution: LOOP_PROBE_MS });

  constructor() {
    this.computed("gauge", "turnout_event_loop_lag_seconds", "How late the event loop was since the last scrape", ["quantile"], () =>
      this.#lag(),
    );
    this.#loopDelay.enable();
  }

  /** What a scrape is answered with. */
  async reply(): Promise<Reply> {
    return { status: 200, headers: { "Content-Type": this.#registry.contentType }, body: await this.#registry.metrics() };
  }

  /** Stop measuring. */
  close(): void {
    this.#loopDelay.disable();
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
          gauge.reset();
          for (const [labels, value] of read()) gauge.set(labels, value);
        },
      });
      return;
    }
    const counter: Counter<L> = new Counter({
      ...common,
      collect: () => {
        counter.reset();
        for (const [labels, value] of read()) counter.inc(labels, value);
      },
    });
  }

  *#lag(): Readings<"quantile"> {
    const delays = this.#loopDelay;
    const seconds = (ns: number): number => (delays.count === 0 ? 0 : Math.max(0, ns / 1e9 - LOOP_PROBE_MS / 1e3));
    yield [{ quantile: "0.99" }, seconds(delays.percentile(99))];
    yield [{ quantile: "1" }, seconds(delays.max)];
    delays.reset();
  }
}
