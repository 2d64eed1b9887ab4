import type { Clock } from "../contract/world.ts";

interface Sleeper {
  readonly untilMs: number;
  readonly wake: () => void;
}

// Enough for the longest chain of awaits between two sleeps of anything here: a bisection over a few dozen rows.
const TURNS = 400;

/** Let everything that waits for no time run as far as it gets. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await Promise.resolve();
}

/** A clock that stands still until it is told to go on. */
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

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || ms <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const sleeper: Sleeper = { untilMs: this.#nowMs + ms, wake };
    this.#sleepers.add(sleeper);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    this.#sleepers.delete(sleeper);
    signal.removeEventListener("abort", wake);
  }

  /** Let `ms` go by: everyone due in between wakes at its own time, and runs until it waits again. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const due = [...this.#sleepers].filter(({ untilMs }) => untilMs <= endMs).toSorted((a, b) => a.untilMs - b.untilMs)[0];
      if (due === undefined) break;
      this.#nowMs = Math.max(this.#nowMs, due.untilMs);
      this.#sleepers.delete(due);
      due.wake();
      await settle();
    }
    this.#nowMs = endMs;
  }
}
