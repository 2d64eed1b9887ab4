/** Samples summed up. Units are the samples' own. */
export interface Summary {
  readonly count: number;
  readonly min: number;
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * The smallest sample that at least `fraction` of all samples do not exceed (nearest rank, nothing interpolated).
 * @throws {RangeError} without samples.
 */
export function percentile(samples: readonly number[], fraction: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)];
  if (value === undefined) throw new RangeError("no samples");
  return value;
}

/** The middle sample, or the mean of the two in the middle. @throws {RangeError} without samples. */
export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1);
  if (middle.length === 0) throw new RangeError("no samples");
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}

/** Sum samples up. @throws {RangeError} without samples. */
export function summarize(samples: readonly number[]): Summary {
  return {
    count: samples.length,
    min: percentile(samples, 0),
    median: median(samples),
    p99: percentile(samples, 0.99),
    max: percentile(samples, 1),
  };
}

/**
 * Spread kinds of runs over time, so that a machine that changes its mind favours none: each kind's runs lie at even
 * distances. Order within a moment is that of `counts`.
 */
export function interleave<T>(counts: readonly { readonly what: T; readonly runs: number }[]): readonly T[] {
  const at = counts.flatMap(({ what, runs }) => Array.from({ length: runs }, (_, run) => ({ what, time: (run + 0.5) / runs })));
  return at.toSorted((a, b) => a.time - b.time).map(({ what }) => what);
}
