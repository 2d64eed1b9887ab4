import type { Clock } from "../contract/world.ts";

/**
 * The system's clock.
 *
 * Edges: `nowMs` never goes back, also when the host's clock is set; `wallMs` follows it. A sleep keeps the process
 * alive; sleeps above 24 days are cut into pieces.
 */
export function systemClock(): Clock {
  return { nowMs: () => performance.timeOrigin + performance.now(), wallMs: () => Date.now(), cpuMs, sleep };
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
