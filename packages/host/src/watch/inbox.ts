import type { Clock } from "@turnout/core";

/**
 * Takes in what several sources tell, for one reader who may also wait for a time.
 *
 * Not a race of their promises: one of them may be pending for weeks, and would keep something of every race.
 * Edges: the first source that ends, ends it all; what was told before is still read.
 */
export class Inbox<T extends object> {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #news: (T | End)[] = [];
  #wake: () => void = () => undefined;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Take in what a source tells, until it ends. */
  follow<S>(source: AsyncIterable<S>, newsOf: (reported: S) => T): void {
    const reported = source[Symbol.asyncIterator]();
    const pump = async (): Promise<void> => {
      for (let next = await reported.next(); next.done !== true; next = await reported.next()) this.put(newsOf(next.value));
      this.#add(new End());
    };
    pump().catch((error: unknown) => this.#add(new End({ error })));
  }

  /** Take in one thing. */
  put(news: T): void {
    this.#add(news);
  }

  /**
   * The next news; `due` when there is none until `dueMs` (ms since the epoch, never by default), `end` after the end or abort.
   * @throws what a source failed with.
   */
  async next(dueMs: number = Number.POSITIVE_INFINITY): Promise<T | "due" | "end"> {
    if (this.#news.length === 0 && dueMs > this.#clock.nowMs()) await this.#rest(dueMs);
    if (this.#signal.aborted) return "end";
    const news = this.#news.shift() ?? "due";
    if (!(news instanceof End)) return news;
    if (news.failure !== undefined) throw news.failure.error;
    return "end";
  }

  async #rest(dueMs: number): Promise<void> {
    if (this.#signal.aborted) return;
    const awake = new AbortController();
    const wake = (): void => awake.abort();
    this.#wake = wake;
    this.#signal.addEventListener("abort", wake, { once: true });
    if (Number.isFinite(dueMs)) await this.#clock.sleep(dueMs - this.#clock.nowMs(), awake.signal);
    else await new Promise((resolve) => awake.signal.addEventListener("abort", resolve, { once: true }));
    this.#signal.removeEventListener("abort", wake);
  }

  #add(news: T | End): void {
    this.#news.push(news);
    this.#wake();
  }
}

/** A source ended, or failed with something. */
class End {
  readonly failure: { readonly error: unknown } | undefined;

  constructor(failure?: { readonly error: unknown }) {
    this.failure = failure;
  }
}
