import type { Clock, Log, ProxyError } from "@turnout/core";

/** What several feeds of one server have said: a server that is away is one trouble, not one for each kind of object. */
export class LoggedProblems {
  readonly #saidMs = new Map<string, number>();

  /** Tell whether a trouble was said by any feed in the last `withinMs`; if not, it counts as said now. */
  isNews(problem: string, nowMs: number, withinMs: number): boolean {
    for (const [text, saidMs] of this.#saidMs) if (nowMs - saidMs >= withinMs) this.#saidMs.delete(text);
    if (this.#saidMs.has(problem)) return false;
    this.#saidMs.set(problem, nowMs);
    return true;
  }
}

/** What an outage log works with. */
interface OutageLogParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly remindMs: number;
  readonly said: LoggedProblems;
  /** Hears of each failure, and with "" when it works: first or again. */
  readonly onHealth?: ((subject: string, problem: string) => void) | undefined;
}

/**
 * Logs a series of failures without spam: one warning at the start, one each `remindMs`, one line at the end.
 *
 * Edges: what another feed has just said of the same trouble is not said again.
 */
export class OutageLog {
  readonly #subject: string;
  readonly #parts: OutageLogParts;
  #warnedMs: number | undefined;
  #isReported = false;
  #sinceMs = 0;
  #failures = 0;

  /** `subject` begins each line, e.g. `Services`. */
  constructor(subject: string, parts: OutageLogParts) {
    this.#subject = subject;
    this.#parts = parts;
  }

  /** A try failed; the next one is in `waitMs`. */
  failed(error: ProxyError, waitMs: number): void {
    const { clock, log, remindMs, said, onHealth } = this.#parts;
    const nowMs = clock.nowMs();
    onHealth?.(this.#subject, error.message);
    if (this.#failures === 0) this.#sinceMs = nowMs;
    this.#failures++;
    const fields = { error: error.message, failures: this.#failures, retryInMs: waitMs };
    // The pause also spans outages, so that a flapping server gives one pair of lines each remindMs.
    const isRecent = this.#warnedMs !== undefined && nowMs - this.#warnedMs < remindMs;
    if (isRecent || !said.isNews(error.message, nowMs, remindMs)) {
      return log.debug(`${this.#subject}: still failing`, fields);
    }
    this.#warnedMs = nowMs;
    this.#isReported = true;
    log.warn(`${this.#subject}: the feed failed; what is known stays in force`, fields);
  }

  /** It works. */
  recovered(): void {
    const { clock, log, onHealth } = this.#parts;
    onHealth?.(this.#subject, "");
    if (this.#failures === 0) return;
    const fields = { failures: this.#failures, afterMs: Math.round(clock.nowMs() - this.#sinceMs) };
    if (this.#isReported) log.info(`${this.#subject}: the feed works again`, fields);
    this.#failures = 0;
    this.#isReported = false;
  }
}
