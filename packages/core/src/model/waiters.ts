interface Waiter<T> {
  readonly resolve: (value: T | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Promises that wait for one thing to happen, and are resolved or rejected together.
 *
 * Shape: those that wait when {@link Waiters.resolve} or {@link Waiters.reject} is called; who comes later waits for the next call.
 */
export class Waiters<T = void> {
  readonly #waiting = new Set<Waiter<T>>();

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Wait for the next call; undefined as soon as `signal` aborts. @throws what {@link Waiters.reject} was given. */
  wait(signal?: AbortSignal): Promise<T | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
    if (signal?.aborted === true) {
      resolve(undefined);
      return promise;
    }
    const end = (): void => {
      this.#waiting.delete(waiter);
      signal?.removeEventListener("abort", stop);
    };
    const waiter: Waiter<T> = {
      resolve(value) {
        end();
        resolve(value);
      },
      reject(error) {
        end();
        reject(error);
      },
    };
    const stop = (): void => waiter.resolve(undefined);
    this.#waiting.add(waiter);
    signal?.addEventListener("abort", stop, { once: true });
    return promise;
  }

  /** Let all that wait now go on, with `value`. */
  resolve(value: T): void {
    for (const waiter of this.#waiting) waiter.resolve(value);
  }

  /** Have all that wait now fail. */
  reject(error: unknown): void {
    for (const waiter of this.#waiting) waiter.reject(error);
  }
}
