import type { Reply } from "../health/health.ts";
import { MetricSet } from "./metric-set.ts";
import { processTimeMs } from "./process-time.ts";

/**
 * What `/metrics/slis` serves: how health checks answered.
 *
 * Edges: checks appear once they were asked for; a reset takes all counts back.
 * @source KEP-3466; component-base v0.36.3 metrics/prometheus/slis
 */
export class SliMetrics {
  readonly #set: MetricSet = new MetricSet();
  readonly #last;
  readonly #total;

  constructor() {
    const help = "Start time of the process since unix epoch in seconds.";
    this.#set.computed("gauge", "process_start_time_seconds", `[ALPHA] ${help}`, [], () => [[{}, processTimeMs() / 1000]]);
    this.#last = this.#set.gauge("kubernetes_healthcheck", "[STABLE] This metric records the result of a single healthcheck.", [
      "type",
      "name",
    ]);
    this.#total = this.#set.counter("kubernetes_healthchecks_total", "[STABLE] This metric records the results of all healthcheck.", [
      "type",
      "name",
      "status",
    ]);
  }

  /** A check was asked for; `type` is its path, e.g. `healthz`. */
  checked(type: string, name: string, isOK: boolean): void {
    this.#last.set({ type, name }, isOK ? 1 : 0);
    this.#total.inc({ type, name, status: isOK ? "success" : "error" });
  }

  /** Answer a scrape. */
  reply(): Promise<Reply> {
    return this.#set.reply();
  }

  /** Forget all checks. */
  reset(): void {
    this.#last.reset();
    this.#total.reset();
  }
}
