import { wallMs } from "@turnout/core";
import { systemClock } from "@turnout/core/process";

const CLOCK = systemClock();

/** Give a moment of `performance`, in ms since the epoch as the wall clock is set now. Default: when the process began. */
export function processTimeMs(atMs: number = performance.timeOrigin): number {
  return wallMs(CLOCK, atMs);
}
