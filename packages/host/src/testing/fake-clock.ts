import type { Clock } from "@turnout/core";

/** A {@link Clock} that stands still until told. */
export interface FakeClock extends Clock {
  /**
   * Move time on; sleepers wake in the order of their times (first come first when equal), each at its own time,
   * and what they do then is done before the next one wakes, new sleeps included.
   */
  advance(ms: number): Promise<void>;
  /** How many are asleep. */
  readonly sleeping: number;
}

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** Make a {@link FakeClock}; it starts at `startMs`. Edges: a sleep of 0 or less, or with an aborted signal, doesn't sleep. */
export function createFakeClock(startMs: number = 0): FakeClock {
  let nowMs = startMs;
  let sleepers: Sleeper[] = [];
  return {
    nowMs: () => nowMs,
    sleep(ms: number, signal: AbortSignal): Promise<void> {
      if (ms <= 0 || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = (): void => {
          sleepers = sleepers.filter((other) => other !== sleeper);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        const sleeper: Sleeper = { dueMs: nowMs + ms, wake };
        sleepers.push(sleeper);
        signal.addEventListener("abort", wake, { once: true });
      });
    },
    async advance(ms: number): Promise<void> {
      const untilMs = nowMs + ms;
      await settle();
      for (;;) {
        const next = firstDue(sleepers, untilMs);
        if (next === undefined) break;
        nowMs = next.dueMs;
        next.wake();
        await settle();
      }
      nowMs = untilMs;
    },
    get sleeping(): number {
      return sleepers.length;
    },
  };
}

function firstDue(sleepers: readonly Sleeper[], untilMs: number): Sleeper | undefined {
  let first: Sleeper | undefined;
  for (const sleeper of sleepers) {
    if (sleeper.dueMs <= untilMs && (first === undefined || sleeper.dueMs < first.dueMs)) first = sleeper;
  }
  return first;
}

/** Let everything run that only waits for promises. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
