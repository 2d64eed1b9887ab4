import type { Clock } from "../contract/world.ts";

interface Sleeper {
  readonly untilMs: number;
  readonly wake: () => void;
}

/** Let everything that waits for no time run as far as it gets. */
export function flushPromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A clock that stands still until it is told to go on. Edges: a sleep of 0 or less, or with an aborted signal, doesn't sleep. */
export class TestClock implements Clock {
  readonly #sleepers = new Set<Sleeper>();
  #nowMs: number;

  constructor(nowMs: number = 1_000_000) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  /** How many sleep now. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper: Sleeper = { untilMs: this.#nowMs + ms, wake };
      this.#sleepers.add(sleeper);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  /**
   * Let `ms` go by: sleepers wake in the order of their times (first come first when equal), each at its own time, and what they do then is
   * done before the next one wakes, new sleeps included.
   */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await flushPromises();
    for (let next = this.#firstDue(endMs); next !== undefined; next = this.#firstDue(endMs)) {
      this.#nowMs = Math.max(this.#nowMs, next.untilMs);
      next.wake();
      await flushPromises();
    }
    this.#nowMs = endMs;
  }

  #firstDue(endMs: number): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.#sleepers)
      if (sleeper.untilMs <= endMs && (first === undefined || sleeper.untilMs < first.untilMs)) first = sleeper;
    return first;
  }
}
