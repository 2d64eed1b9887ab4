/** Samples that are kept; older ones are forgotten. */
const SAMPLES_MAX = 1_000;

/** How long recent changes took, in ms. */
export interface LatencySummary {
  /** How many changes that is about, the last thousand at most. */
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/**
 * How long the last changes waited, from when this process heard of one until it was in force.
 *
 * Edges: changes that are merged are one sample, from the first of them. The first sync is none: it is about everything there is.
 */
export class RecentLatencies {
  readonly #samplesMs: number[] = [];
  #next = 0;
  #sinceMs: number | undefined;
  #isFirst = true;

  /** A change came. */
  queued(atMs: number): void {
    this.#sinceMs ??= atMs;
  }

  /** Everything that came is in force. */
  active(atMs: number): void {
    const sinceMs = this.#sinceMs;
    this.#sinceMs = undefined;
    if (sinceMs === undefined) return;
    if (!this.#isFirst) {
      this.#samplesMs[this.#next] = Math.max(0, atMs - sinceMs);
      this.#next = (this.#next + 1) % SAMPLES_MAX;
    }
    this.#isFirst = false;
  }

  /** Undefined: nothing changed since the first sync. */
  get summary(): LatencySummary | undefined {
    const sorted = this.#samplesMs.toSorted((a, b) => a - b);
    const last = sorted.at(-1);
    if (last === undefined) return undefined;
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? last;
    return { samples: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: last };
  }
}
