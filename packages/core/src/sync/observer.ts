import type { ProxyError } from "../model/errors.ts";
import type { ChangeSet } from "../model/rows.ts";
import type { IPFamily } from "../model/api-objects.ts";

/** A sync that succeeded, or did what it could in its turn: then `waitingSinceMs` says so, and the next one carries on at once. Times in ms. */
export interface SyncedEvent {
  readonly family: IPFamily;
  /** Everything was compared with the host, not just what changed. */
  readonly full: boolean;
  readonly durationMs: number;
  /** When the endpoint changes of change sets that are in force as a whole now were triggered. */
  readonly triggersMs: readonly number[];
  /** When these change sets came. */
  readonly queuedMs: readonly number[];
  /** When the oldest change set came that is not in force as a whole: the turn of some of its rows has not come, or time was up; undefined: all are. */
  readonly waitingSinceMs: number | undefined;
  readonly put: number;
  readonly removed: number;
  /** Objects not tried yet, because the time of the turn was up. */
  readonly deferred: number;
  /** Objects that the host held otherwise than we had left them: a foreign hand's doing, mended now. */
  readonly drifted: number;
  /** What was done to some of them, for people: what, `objectId`, and the row that it belongs to. */
  readonly driftedSome: readonly string[];
  /** What somebody was seen to do to our objects was mended, as a drift's `left` told, and not found by comparing. */
  readonly repaired: boolean;
  /** Objects in force. */
  readonly objects: number;
  readonly atMs: number;
}

/** A sync that failed. */
export interface FailedEvent {
  readonly family: IPFamily;
  readonly full: boolean;
  readonly durationMs: number;
  readonly error: ProxyError;
  readonly atMs: number;
}

/** Hears what a sync loop does; must not throw. */
export interface SyncObserver {
  /** A change set came; what it changes is as before until this returns. */
  queued(event: { readonly family: IPFamily; readonly atMs: number; readonly changes: ChangeSet }): void;
  synced(event: SyncedEvent): void;
  failed(event: FailedEvent): void;
  flowsForgotten(event: { readonly family: IPFamily; readonly count: number; readonly durationMs: number }): void;
  /**
   * What the host refuses now: rows that are kept as they were, or of which an object failed, and the objects that failed. Told whenever it
   * may have changed.
   */
  quarantined(event: { readonly family: IPFamily; readonly rows: readonly string[]; readonly objects: readonly string[] }): void;
}
