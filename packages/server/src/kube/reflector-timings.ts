import type { BackoffLimits } from "./backoff.ts";

/** Times a reflector goes by; tests shorten them. */
export interface ReflectorTimings extends BackoffLimits {
  /** How often, while the server can't be reached or doesn't accept the credentials, these are looked at: new ones are tried at once. */
  readonly credentialsMs: number;
  /** A watch that lived this long ends a series of failures. */
  readonly steadyMs: number;
  /** A watch silent for longer is given up; API servers send a bookmark each minute. */
  readonly watchIdleMs: number;
  /** A watch-list that sends no object for so long before its first objects are complete is given up, and a list takes its place. */
  readonly watchListIdleMs: number;
  /** A list in the place of a watch-list comes within this time by chance: many nodes may have the same to list. */
  readonly listSpreadMs: number;
  /** How long lists are used after that, spread over 50–150 %. */
  readonly watchListRestMs: number;
  /** Of {@link watchIdleMs} within the body of a list. */
  readonly listIdleMs: number;
  /** timeoutSeconds of a watch is this, and up to as much again by chance. */
  readonly watchSeconds: number;
  /** How long until an API that isn't served is asked for again, at most; the waits grow up to this, spread over 50–150 %. */
  readonly missingApiMs: number;
  /** A failure that lasts is logged as a warning this often; what is between goes to debug. */
  readonly remindMs: number;
}

/** What a production reflector goes by. */
export const DEFAULT_TIMINGS: ReflectorTimings = {
  backoffBaseMs: 800,
  backoffMaxMs: 30_000,
  cheapBackoffMaxMs: 5_000,
  credentialsMs: 500,
  steadyMs: 5_000,
  watchIdleMs: 150_000,
  watchListIdleMs: 30_000,
  listSpreadMs: 5_000,
  watchListRestMs: 3_600_000,
  listIdleMs: 60_000,
  watchSeconds: 300,
  missingApiMs: 600_000,
  remindMs: 60_000,
};
