import { Backoff } from "./backoff.ts";

/** Intervals of a sync loop, in ms. */
export interface ScheduleOptions {
  /** Between the end of one sync and the start of the next. */
  readonly minIntervalMs: number;
  /** After this long everything is compared with the host again; later where comparing takes more than a two-hundredth of it, unless `keepsMaxInterval`. */
  readonly maxIntervalMs: number;
  /** Everything is compared after `maxIntervalMs`, whatever share of the time that takes. */
  readonly keepsMaxInterval?: boolean | undefined;
  /** Longest wait after a failure. */
  readonly retryMs: number;
}

/** Comparing everything takes up to this share of the time, where nothing was seen to have changed. A host has two families. */
const COMPARING_SHARE = 0.005;

/**
 * When a sync loop syncs. Pure: it is told the time, in ms since the epoch.
 *
 * Shape: a change is synced at once, but for the minimum interval; `dueMs` is when to sync although nothing changed: after a failure, for what is
 * asked for soon, for what the host refused or what lingers, and to compare everything.
 */
export class Schedule {
  readonly #options: ScheduleOptions;
  readonly #backoff: Backoff;
  #endMs = Number.NEGATIVE_INFINITY;
  #dueMs = Number.POSITIVE_INFINITY;
  #auditMs = Number.POSITIVE_INFINITY;
  #isHurried = false;
  #isUnfinished = false;
  /** When the sync began that compares everything; undefined: the last one doesn't. */
  #fullSinceMs: number | undefined;

  constructor(options: ScheduleOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.retryMs);
  }

  /** When to sync although nothing changed; infinite: never. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** The last sync was out of time, and another carries on. */
  get isUnfinished(): boolean {
    return this.#isUnfinished;
  }

  /** How long the next sync has to wait yet. */
  restMs(nowMs: number): number {
    return this.#isUnfinished ? 0 : Math.max(0, this.#endMs + this.#options.minIntervalMs - nowMs);
  }

  /** Sync soon. */
  hurry(nowMs: number): void {
    this.#dueMs = nowMs;
    this.#isHurried = true;
  }

  /** There is nothing to sync before something changes. */
  idle(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  /** Whether everything is to be compared with the host again. */
  isAuditDue(nowMs: number): boolean {
    return nowMs >= this.#auditMs;
  }

  /** A sync begins. */
  began(nowMs: number, isFull: boolean): void {
    if (isFull) this.#auditMs = nowMs + this.#options.maxIntervalMs;
    this.#dueMs = this.#auditMs;
    this.#fullSinceMs = isFull ? nowMs : undefined;
    this.#isHurried = false;
    this.#isUnfinished = false;
  }

  /** It succeeded; `dueMs`: what of it is to be done later is due then; `comparingMs`: what comparing everything took. */
  succeeded(nowMs: number, dueMs: number, comparingMs: number): void {
    this.#backoff.reset();
    if (this.#options.keepsMaxInterval !== true)
      this.#auditMs = Math.max(this.#auditMs, (this.#fullSinceMs ?? nowMs) + comparingMs / COMPARING_SHARE);
    this.#dueMs = Math.min(this.#isHurried ? this.#dueMs : this.#auditMs, dueMs);
    this.#endMs = nowMs;
  }

  /** It was out of time: the next one carries on at once. */
  paused(nowMs: number): void {
    this.#backoff.reset();
    this.#dueMs = nowMs;
    this.#endMs = nowMs;
    this.#isUnfinished = true;
  }

  /** It failed; says for how long to wait, in ms. */
  failed(nowMs: number): number {
    const waitMs = this.#backoff.next();
    this.#dueMs = nowMs + waitMs;
    this.#endMs = nowMs;
    return waitMs;
  }
}
