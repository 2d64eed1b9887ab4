import type { Clock } from "../contract/world.ts";

/**
 * By how much the wall clock must be set to be followed. Two clocks can't be read in one moment, and a time that differs a little at each scrape looks like one that
 * changes.
 */
const STEP_MS = 100;

/**
 * The system's clock.
 *
 * Edges: `nowMs` never goes back, also when the host's clock is set; `aheadMs` follows that. A sleep keeps the process
 * alive; sleeps above 24 days are cut into pieces.
 */
export function systemClock(): Clock {
  let knownMs = 0;
  const aheadMs = (): number => {
    const ms = Date.now() - nowMs();
    if (Math.abs(ms - knownMs) >= STEP_MS) knownMs = ms;
    return knownMs;
  };
  return { nowMs, aheadMs, cpuMs, sleep };
}

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** setTimeout takes 31 bits of milliseconds; more would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= LONGEST_TIMER_MS) {
    await timer(Math.min(left, LONGEST_TIMER_MS), signal);
  }
}

function timer(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(handle);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const handle = setTimeout(wake, ms);
    signal.addEventListener("abort", wake, { once: true });
  });
}
