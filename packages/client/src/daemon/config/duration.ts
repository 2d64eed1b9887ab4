import { ProxyError } from "@turnout/core";

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const LONGEST_MS = 2 ** 63 / 1e6;
const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/**
 * Parse a duration the way Go writes it: `30s`, `1m30s`, `1.5h`, `0`.
 *
 * Units: the result is in milliseconds, with a fraction below one.
 * Edges: a sign is allowed; a number without a unit is refused unless it is 0; so is what is longer than Go's 64 bits of nanoseconds (292 years).
 * @throws {ProxyError} `invalid_object` naming the text.
 */
export function parseDuration(text: string): number {
  const negative = text.startsWith("-");
  const body = negative || text.startsWith("+") ? text.slice(1) : text;
  if (body === "0") return 0;
  let totalMs = 0;
  let position = 0;
  while (position < body.length) {
    PART.lastIndex = position;
    const match = PART.exec(body);
    if (match === null) break;
    totalMs += Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 0);
    position = PART.lastIndex;
  }
  if (body === "" || position < body.length || totalMs > LONGEST_MS) {
    throw new ProxyError("invalid_object", `"${text}" is not a duration`, { hint: "write it like 30s, 1m30s or 250ms" });
  }
  return negative ? -totalMs : totalMs;
}

/** Write milliseconds as Go does (`1m30s`, `250ms`, `24h0m0s`); what {@link parseDuration} reads back. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms === 0) return "0s";
  if (ms < 1) return `${ms * 1000}µs`;
  if (ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = (ms % 60_000) / 1000;
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`;
}
