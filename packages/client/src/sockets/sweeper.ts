import type { Clock } from "@turnout/core";

/** Does something now and then for as long as there is something to do; sleeps without a timer otherwise. */
export class Sweeper {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #sweep: () => boolean;
  readonly #stop = new AbortController();
  #isRunning = false;

  /** @param sweep says whether something is left to sweep later */
  constructor(clock: Clock, everyMs: number, sweep: () => boolean) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#sweep = sweep;
  }

  /** There is something to do from now on. */
  wake(): void {
    if (this.#isRunning || this.#stop.signal.aborted) return;
    this.#isRunning = true;
    void this.#run();
  }

  /** Never sweep again. */
  stop(): void {
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    do await this.#clock.sleep(this.#everyMs, signal);
    while (!signal.aborted && this.#sweep());
    this.#isRunning = false;
  }
}
