/** A source that tells nothing, and how many wait for it to. */
export interface CountedSource<T> extends AsyncIterable<T> {
  /** How often its pending promise was asked to tell (by `then`, or a race): a promise keeps everybody who did until it is settled. */
  readonly waiters: number;
}

/** Make a source that stays silent: to show that waiting beside it for something else leaves nothing behind. */
export function countedSource<T>(): CountedSource<T> {
  const waiting: unknown[] = [];
  const silent = new Promise<IteratorResult<T>>(() => undefined);
  const ask = silent.then.bind(silent);
  // It counts, and is a promise all the same.
  // eslint-disable-next-line unicorn/no-thenable
  silent.then = (onReported, onFailed) => ask((waiting.push(onReported), onReported), onFailed);
  return {
    get waiters(): number {
      return waiting.length;
    },
    [Symbol.asyncIterator]: () => ({ next: () => silent }),
  };
}
