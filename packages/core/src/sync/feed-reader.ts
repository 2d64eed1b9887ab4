import type { Clock, Log } from "../contract/world.ts";
import { ProxyError } from "../model/errors.ts";
import type { ChangeSet, Feed } from "../model/rows.ts";
import { Waiters } from "../model/waiters.ts";

/** What a reader works with. */
export interface FeedReaderOptions {
  readonly feed: Feed;
  readonly clock: Clock;
  readonly log: Log;
  /** How long to wait before a lost feed is asked again, in ms. */
  readonly retryMs: number;
}

/** So long a wait is at least, in ms: what has come is heard, so that what is due is done together with it, and not before it. */
const HEARING_MS = 1;

/** Why a wait ended: a change set came; it is time, or somebody woke it; the feed was lost, and will be asked again. */
export type Heard = ChangeSet | "due" | "lost";

/**
 * Waits for the change sets of a feed, one after the other, and for the time to do something without one.
 *
 * Not a race with the feed's promises: one of them may be pending for weeks, and would keep something of every race.
 */
export class FeedReader {
  readonly #options: FeedReaderOptions;
  readonly #waiters = new Waiters();
  /** What the feed told, and nobody heard yet. */
  #reported: { readonly changes: ChangeSet } | { readonly error: unknown } | undefined;
  #isAsked = false;

  constructor(options: FeedReaderOptions) {
    this.#options = options;
  }

  /** End the wait. */
  wake(): void {
    this.#waiters.resolve();
  }

  /** Wait for a change set, but not beyond `untilMs` (may be infinite), nor `signal`. */
  async wait(untilMs: number, signal: AbortSignal): Promise<Heard> {
    const { clock, log } = this.#options;
    if (!this.#isAsked) this.#ask(signal);
    if (this.#reported === undefined) {
      const stop = new AbortController();
      const waits: Promise<void>[] = [this.#waiters.wait(signal)];
      if (Number.isFinite(untilMs)) waits.push(clock.sleep(Math.max(HEARING_MS, untilMs - clock.nowMs()), stop.signal));
      await Promise.race(waits);
      stop.abort();
      this.wake();
    }
    const reported = this.#reported;
    if (reported === undefined) return "due";
    this.#reported = undefined;
    this.#isAsked = false;
    if ("changes" in reported) return reported.changes;
    const { message } = ProxyError.from(reported.error, "feed_lost", "feed lost");
    if (signal.aborted) return "lost";
    log.warn("the feed of node state was lost, rules stay as they are", { error: message });
    this.#askAgain(signal);
    return "lost";
  }

  /** Ask a lost feed again after a while; what is due is heard meanwhile. */
  #askAgain(signal: AbortSignal): void {
    const { clock, retryMs } = this.#options;
    this.#isAsked = true;
    void clock.sleep(retryMs, signal).then(() => this.#ask(signal));
  }

  #ask(signal: AbortSignal): void {
    this.#isAsked = true;
    const hear = (reported: { readonly changes: ChangeSet } | { readonly error: unknown }): void => {
      this.#reported = reported;
      this.wake();
    };
    this.#options.feed.next(signal).then(
      (changes) => hear({ changes }),
      (error: unknown) => hear({ error }),
    );
  }
}
