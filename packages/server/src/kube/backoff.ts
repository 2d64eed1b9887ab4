/** An API server that is busy asks for seconds; one that is broken can't ask for more than this. */
export const RETRY_AFTER_MAX_MS = 300_000;

/** Bounds of the waits between failed attempts. */
export interface BackoffLimits {
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  /** The longest wait, before it is spread, where a try costs the server next to nothing. */
  readonly cheapBackoffMaxMs: number;
}

/**
 * What a try failed with, by what the next one costs the server.
 * - `unreached`: no connection came about, or nothing was asked at all: next to nothing;
 * - `unauthorized`: it didn't accept the credentials: little, as nothing is read for an answer;
 * - `refused`: anything it answered, or left unanswered, once it was asked: as much as a list.
 */
export type Problem = "unreached" | "unauthorized" | "refused";

/**
 * Say how long to wait after `failures` failures in a row: doubling up to `maxMs`, spread over 50–150 %, never less than the server asked for,
 * of which five minutes count at most.
 *
 * Units: ms; `random` in [0, 1). Edges: `failures` 1 is the first.
 */
export function backoffMs(failures: number, retryAfterMs: number, random: number, baseMs: number, maxMs: number): number {
  const spread = 0.5 + random;
  const doubled = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30)) * spread;
  // What the server asks for is spread upwards only, and the sum is bounded.
  return Math.round(Math.max(doubled, Math.min(RETRY_AFTER_MAX_MS, retryAfterMs * (1 + random / 2))));
}

/**
 * Counts failures in a row by what they are, and says how long to wait after each.
 *
 * Edges: a server that answers is no longer unreached, and one that accepted the credentials has authorized: these counts begin anew. What
 * it refuses is counted until {@link Retries.reset}, whatever it did in between.
 */
export class Retries {
  readonly #limits: BackoffLimits;
  readonly #random: () => number;
  readonly #counts: Record<Problem, number> = { unreached: 0, unauthorized: 0, refused: 0 };

  constructor(limits: BackoffLimits, random: () => number) {
    this.#limits = limits;
    this.#random = random;
  }

  /** How often that went wrong in a row. */
  count(problem: Problem): number {
    return this.#counts[problem];
  }

  /** Note a failure. */
  note(problem: Problem): void {
    if (problem !== "unreached") this.#counts.unreached = 0;
    if (problem === "refused") this.#counts.unauthorized = 0;
    this.#counts[problem]++;
  }

  /** How long to wait after the last failure of that kind. `retryAfterMs`: what the server asked for. */
  waitMs(problem: Problem, retryAfterMs: number): number {
    const { backoffBaseMs, backoffMaxMs, cheapBackoffMaxMs } = this.#limits;
    const maxMs = problem === "refused" ? backoffMaxMs : cheapBackoffMaxMs;
    return backoffMs(this.#counts[problem], retryAfterMs, this.#random(), backoffBaseMs, maxMs);
  }

  /** The server gave what was asked for. */
  answered(): void {
    this.#counts.unreached = 0;
    this.#counts.unauthorized = 0;
  }

  /** It works, and has for a while. */
  reset(): void {
    this.answered();
    this.#counts.refused = 0;
  }
}
