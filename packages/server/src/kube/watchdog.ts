import type { Clock } from "@turnout/core";

/** Calls back once when nothing has happened for a while; cheap to restart for every chunk of a stream. */
export class Watchdog {
  readonly #clock: Clock;
  readonly #stopped = new AbortController();
  #deadlineMs: number;
  readonly #limitMs: number;

  /** Start; `onExpiry` is called at most once, and never after `stop`. */
  constructor(clock: Clock, limitMs: number, onExpiry: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#deadlineMs = clock.nowMs() + limitMs;
    void this.#run(onExpiry);
  }

  /** Begin to wait anew. */
  restart(): void {
    this.#deadlineMs = this.#clock.nowMs() + this.#limitMs;
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #run(onExpiry: () => void): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const leftMs = this.#deadlineMs - this.#clock.nowMs();
      if (leftMs <= 0) return onExpiry();
      await this.#clock.sleep(leftMs, signal);
    }
  }
}
