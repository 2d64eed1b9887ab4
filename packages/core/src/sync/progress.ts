import type { ProxyError } from "../model/errors.ts";

/** Triggers that are remembered at most; they are a sample for a histogram of latencies, and while syncs fail they pile up. */
const TRIGGERS_MAX = 10_000;

/** How far a sync loop has come: what health and metrics tell. Times in ms since the epoch. */
export class Progress {
  #triggersMs: number[] = [];
  #lastSuccessMs: number | undefined;
  #pendingSinceMs: number | undefined;
  #lastError: ProxyError | undefined;

  /** When everything that was wanted was last in force, but for what the host refuses. */
  get lastSuccessMs(): number | undefined {
    return this.#lastSuccessMs;
  }

  /** Since when a change has been waiting, and nothing of what waits was brought into force; undefined: none is. */
  get pendingSinceMs(): number | undefined {
    return this.#pendingSinceMs;
  }

  /** What the last sync failed with. */
  get lastError(): ProxyError | undefined {
    return this.#lastError;
  }

  /** A change came; `triggersMs`: when the endpoint changes in it were triggered, the earliest of which are remembered. */
  queued(atMs: number, triggersMs: readonly number[]): void {
    this.#pendingSinceMs ??= atMs;
    for (const triggerMs of triggersMs.slice(0, TRIGGERS_MAX - this.#triggersMs.length)) this.#triggersMs.push(triggerMs);
  }

  /** A sync failed. Also when nothing changed: what the host lost and can't be given back is waiting too. */
  failed(startMs: number, error: ProxyError): void {
    this.#lastError = error;
    this.#pendingSinceMs ??= startMs;
  }

  /** A sync was out of time, and did something: what it left waits from now on. Which triggers that concerns isn't known, so there are none. */
  paused(atMs: number): readonly number[] {
    this.#lastError = undefined;
    this.#pendingSinceMs = atMs;
    return [];
  }

  /** Everything is in force; returns the triggers of what is now. */
  succeeded(atMs: number): readonly number[] {
    const triggersMs = this.#triggersMs;
    this.#triggersMs = [];
    this.#lastError = undefined;
    this.#lastSuccessMs = atMs;
    this.#pendingSinceMs = undefined;
    return triggersMs;
  }
}
