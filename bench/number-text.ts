import { summarize } from "./statistics.ts";

/** Write milliseconds with three significant digits: `1.53 ms`, `1.32 s`. */
export function timeText(ms: number): string {
  return ms >= 1000 ? `${significant(ms / 1000)} s` : `${significant(ms)} ms`;
}

/** Write bytes as megabytes (1,000,000 bytes). */
export function memoryText(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

/** Write a rate. */
export function rateText(perSecond: number): string {
  return `${Math.round(perSecond / 100) / 10}k/s`;
}

/** Write a ratio: `31x`, `4.6x`, `1.45x`. */
export function ratioText(ratio: number): string {
  return `${ratio >= 20 ? Math.round(ratio) : ratio.toFixed(ratio >= 2 ? 1 : 2)}x`;
}

/** Write runs as `median (min–max, n runs)`; a single run says so. */
export function runsText(samples: readonly number[], text: (value: number) => string): string {
  const { count, min, median, max } = summarize(samples);
  return count === 1 ? `${text(median)} (1 run)` : `${text(median)} (${text(min)}–${text(max)}, ${count} runs)`;
}

function significant(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
