/** Bounds of the wait between failed attempts. */
export interface BackoffLimits {
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
}

/**
 * Say how long to wait after `failures` failures in a row: doubling, spread over 50–150 %, never less than the server asked for.
 *
 * Units: ms; `random` in [0, 1). Edges: `failures` 1 is the first.
 */
export function backoffMs(failures: number, retryAfterMs: number, random: number, limits: BackoffLimits): number {
  const spread = 0.5 + random;
  const doubled = Math.min(limits.backoffMaxMs, limits.backoffBaseMs * 2 ** Math.min(failures - 1, 30)) * spread;
  // What the server asks for is spread upwards only.
  return Math.round(Math.max(doubled, retryAfterMs * (1 + random / 2)));
}
