import type { Clock } from "@turnout/core";

/** The system's clock, for programs that were not given another. */
export function systemClock(): Clock {
  return { nowMs: () => performance.timeOrigin + performance.now(), sleep };
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
}
