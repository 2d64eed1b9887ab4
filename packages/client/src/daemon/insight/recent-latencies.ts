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
 * How long the last change sets waited, from when this process received one until all of it was in force.
 *
 * Edges: the first sync is no sample: it is about everything there is.
 */
export class RecentLatencies {
  readonly #samplesMs: number[] = [];
  #next = 0;
  #isFirst = true;

  /** Change sets that came at these times are in force. */
  active(queuedMs: readonly number[], atMs: number): void {
    if (queuedMs.length === 0) return;
    for (const sinceMs of this.#isFirst ? [] : queuedMs) {
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
