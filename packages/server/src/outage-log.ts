import type { Clock, Log, ProxyError } from "@turnout/core";

/** Logs a series of failures without spam: one warning at the start, one each `remindMs`, one line at the end. */
export class OutageLog {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #subject: string;
  readonly #remindMs: number;
  #warnedMs: number | undefined;
  #isReported = false;
  #sinceMs = 0;
  #failures = 0;

  /** `subject` begins each line, e.g. `Services`. */
  constructor(subject: string, parts: { readonly clock: Clock; readonly log: Log; readonly remindMs: number }) {
    this.#subject = subject;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#remindMs = parts.remindMs;
  }

  /** A try failed; the next one is in `waitMs`. */
  failed(error: ProxyError, waitMs: number): void {
    const nowMs = this.#clock.nowMs();
    if (this.#failures === 0) this.#sinceMs = nowMs;
    this.#failures++;
    const fields = { error: error.message, failures: this.#failures, retryInMs: waitMs };
    // The pause also spans outages, so that a flapping server gives one pair of lines each remindMs.
    if (this.#warnedMs !== undefined && nowMs - this.#warnedMs < this.#remindMs) {
      return this.#log.debug(`${this.#subject}: still failing`, fields);
    }
    this.#warnedMs = nowMs;
    this.#isReported = true;
    this.#log.warn(`${this.#subject}: the feed failed; what is known stays in force`, fields);
  }

  /** It works. */
  recovered(): void {
    if (this.#failures === 0) return;
    const fields = { failures: this.#failures, afterMs: this.#clock.nowMs() - this.#sinceMs };
    if (this.#isReported) this.#log.info(`${this.#subject}: the feed works again`, fields);
    this.#failures = 0;
    this.#isReported = false;
  }
}
