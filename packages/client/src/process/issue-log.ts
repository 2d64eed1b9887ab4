import type { Clock, Issue, Log } from "@turnout/core";

/** What an issue log needs. */
export interface IssueLogOptions {
  readonly log: Log;
  readonly clock: Clock;
  /** Hears of every report, said or not; gets what it is about, e.g. `Service shop/cart`. */
  readonly count?: ((object: string) => void) | undefined;
}

/** Reports of one kind that are said within a window, and how long that is. */
const SAID_MAX = 20;
const WINDOW_MS = 60_000;
/** Kinds told apart at a time; all others are one. */
const KINDS_MAX = 100;
const OTHERS = "something else";
const HINT = "-v logs every one";
const COUNTED_HINT = "-v logs every one; turnout_object_issues_total counts them all; turnout print -v says what is so now";

/** What came of one kind since its first report was said. */
interface Window {
  said: number;
  leftOut: number;
}

/**
 * Writes what is reported about objects into the log: the first of a kind at once, and when more come within a minute than
 * anybody reads, how many were left out.
 *
 * Shape: a kind is the text of `what` before its first colon; behind it are values, and those are the tenants'.
 * Edges: what is left out is still logged for debugging, and counted.
 */
export class IssueLog {
  readonly #options: IssueLogOptions;
  readonly #hint: string;
  readonly #windows = new Map<string, Window>();
  readonly #closed = new AbortController();

  constructor(options: IssueLogOptions) {
    this.#options = options;
    this.#hint = options.count === undefined ? HINT : COUNTED_HINT;
  }

  /** Take one report. */
  readonly report = (issue: Issue): void => {
    const { log, count } = this.#options;
    count?.(issue.object);
    const kind = this.#kindOf(issue);
    const window = this.#windows.get(kind) ?? this.#open(kind);
    const fields = { object: issue.object, hint: issue.hint };
    if (window.said < SAID_MAX) {
      window.said++;
      log.warn(issue.what, fields);
      return;
    }
    if (window.leftOut === 0) log.warn("more reports of this kind are left out of the log for now", { kind, hint: this.#hint });
    window.leftOut++;
    log.debug(issue.what, fields);
  };

  /** Say what was left out; later reports are not limited. */
  close(): void {
    this.#closed.abort();
    for (const kind of this.#windows.keys()) this.#end(kind);
  }

  #kindOf({ what }: Issue): string {
    const [kind = what] = what.split(": ", 1);
    return this.#windows.has(kind) || this.#windows.size < KINDS_MAX ? kind : OTHERS;
  }

  #open(kind: string): Window {
    const window = { said: 0, leftOut: 0 };
    if (this.#closed.signal.aborted) return window;
    this.#windows.set(kind, window);
    void this.#endLater(kind, window);
    return window;
  }

  async #endLater(kind: string, window: Window): Promise<void> {
    await this.#options.clock.sleep(WINDOW_MS, this.#closed.signal);
    if (this.#windows.get(kind) === window) this.#end(kind);
  }

  #end(kind: string): void {
    const leftOut = this.#windows.get(kind)?.leftOut ?? 0;
    this.#windows.delete(kind);
    if (leftOut > 0) this.#options.log.warn("reports of this kind were left out of the log", { kind, leftOut, hint: this.#hint });
  }
}
