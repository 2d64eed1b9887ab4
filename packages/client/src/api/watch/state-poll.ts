import { ProxyError, Waiters } from "@turnout/core";
import { watchFullState, type FullState, type WatchOptions } from "./watch-node-state.ts";

/**
 * The long poll of the KEP-2104 draft: `Next(instance, rev)` gives the whole state as soon as it is another one than the
 * caller has.
 */
export interface StatePoll {
  /**
   * Wait for a state other than (`instance`, `revision`); "" and 0 ask for whatever there is.
   *
   * Edges: answers at once when the newest state known is another one; what happened meanwhile is in it.
   * @throws {ProxyError} `canceled` when `signal` aborts or the poll is closed.
   */
  next(instance: string, revision: number, signal?: AbortSignal): Promise<FullState>;
  close(): Promise<void>;
}

/** Start a long poll. @throws {ProxyError} `invalid_object`, from the first `next`, for a target that is none. */
export function createStatePoll(target: string, options: WatchOptions): StatePoll {
  const stop = new AbortController();
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([options.signal, stop.signal]);
  const states = watchFullState(target, { ...options, signal });
  let newest: FullState | undefined;
  let pull: Promise<FullState | undefined> | undefined;
  /** Pull one more state; whoever waits meanwhile shares the wait. */
  const pulled = (): Promise<FullState | undefined> => {
    pull ??= states.next().then(({ value }) => {
      pull = undefined;
      return (newest = value === undefined ? newest : value);
    });
    return pull;
  };
  return {
    async next(instance, revision, own) {
      for (;;) {
        if (newest !== undefined && (newest.instance !== instance || newest.revision !== revision)) return newest;
        await unlessAborted(pulled, own === undefined ? signal : AbortSignal.any([signal, own]), target);
      }
    },
    async close() {
      stop.abort();
      await states.return();
    },
  };
}

/** Wait for what `start` begins. Nothing is begun that nobody waits for: its failure would be nobody's. */
async function unlessAborted(start: () => Promise<unknown>, signal: AbortSignal, target: string): Promise<void> {
  const canceled = new ProxyError("canceled", "waiting for node state was stopped", { object: target });
  if (signal.aborted) throw canceled;
  const aborted = new Waiters();
  try {
    await Promise.race([start(), aborted.wait(signal)]);
    if (signal.aborted) throw canceled;
  } finally {
    aborted.resolve();
  }
}
