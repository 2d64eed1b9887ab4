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

/** Why a wait ended: a change set came; it is time, or somebody woke it; the feed was lost, and will be asked again. */
export type Heard = ChangeSet | "due" | "lost";

/** Waits for the change sets of a feed, one after the other, and for the time to do something without one. */
export class FeedReader {
  readonly #options: FeedReaderOptions;
  readonly #wakes = new Waiters<"due">();
  #next: Promise<ChangeSet> | undefined;

  constructor(options: FeedReaderOptions) {
    this.#options = options;
  }

  /** End the wait. */
  wake(): void {
    this.#wakes.resolve("due");
  }

  /** Wait for a change set, but not beyond `untilMs` (may be infinite), nor `signal`. */
  async wait(untilMs: number, signal: AbortSignal): Promise<Heard> {
    const { clock, feed, log } = this.#options;
    this.#next ??= feed.next(signal);
    const stop = new AbortController();
    const waits: Promise<ChangeSet | "due" | void>[] = [this.#next, this.#wakes.wait(AbortSignal.any([signal, stop.signal]))];
    if (Number.isFinite(untilMs)) waits.push(clock.sleep(Math.max(0, untilMs - clock.nowMs()), stop.signal));
    try {
      const heard = (await Promise.race(waits)) ?? "due";
      if (heard !== "due") this.#next = undefined;
      return heard;
    } catch (error) {
      this.#next = signal.aborted ? undefined : this.#askAgain(signal);
      const { message } = ProxyError.from(error, "feed_lost", "feed lost");
      if (!signal.aborted) log.warn("the feed of node state was lost, rules stay as they are", { error: message });
      return "lost";
    } finally {
      stop.abort();
    }
  }

  /** Ask a lost feed again after a while; what is due is heard meanwhile. */
  #askAgain(signal: AbortSignal): Promise<ChangeSet> {
    const { clock, feed, retryMs } = this.#options;
    const next = clock.sleep(retryMs, signal).then(() => feed.next(signal));
    // Looked at by the next wait; should it fail before, that must not count as unhandled.
    void Promise.allSettled([next]);
    return next;
  }
}
