/**
 * A bounded queue between a producer that never waits and one consumer that pulls.
 *
 * Edges: when `limit` values wait unread, they are all replaced by `overflow`. Values put before the end are still
 * delivered; after {@link EventQueue.fail} the reader gets the error once, then the end.
 */
export class EventQueue<T> implements AsyncIterableIterator<T, undefined> {
  readonly #limit: number;
  readonly #overflow: T;
  readonly #onReturn: () => void;
  #values: T[] = [];
  #waiting: ((result: Promise<IteratorResult<T, undefined>>) => void)[] = [];
  #error: unknown;
  #hasFailed = false;
  #hasEnded = false;

  constructor(limit: number, overflow: T, onReturn: () => void) {
    this.#limit = limit;
    this.#overflow = overflow;
    this.#onReturn = onReturn;
  }

  /** Add a value. After the end it is ignored. */
  put(value: T): void {
    if (this.#hasEnded) return;
    if (this.#values.length >= this.#limit) this.#values = [this.#overflow];
    else this.#values.push(value);
    this.#serve();
  }

  /** No more values. */
  end(): void {
    this.#hasEnded = true;
    this.#serve();
  }

  /** No more values, for a reason. */
  fail(error: unknown): void {
    if (this.#hasEnded) return;
    this.#error = error;
    this.#hasFailed = true;
    this.end();
  }

  next(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#serve();
    });
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#values = [];
    this.end();
    this.#onReturn();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const result = this.#shift();
      if (result === undefined) return;
      this.#waiting.shift()?.(result);
    }
  }

  #shift(): Promise<IteratorResult<T, undefined>> | undefined {
    if (this.#values.length > 0) return Promise.resolve({ done: false, value: this.#values.shift() as T });
    if (!this.#hasEnded) return undefined;
    if (!this.#hasFailed) return Promise.resolve({ done: true, value: undefined });
    this.#hasFailed = false;
    return Promise.reject(this.#error);
  }
}
