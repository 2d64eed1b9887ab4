import type { Clock } from "@turnout/core";

/** People wait so long without a word, ms. */
const PATIENCE_MS = 2_000;

/** Work that comes in parts, and says once which part takes long. */
export interface SlowNotice {
  /** Do one part, e.g. `rules of service proxies`. */
  during<T>(what: string, work: () => Promise<T>): Promise<T>;
}

/** Tell, once and by one line, which part of some work takes longer than two seconds. */
export function slowNotice(clock: Clock, notify: (line: string) => void): SlowNotice {
  let hasReported = false;
  const reportLater = async (what: string, done: AbortSignal): Promise<void> => {
    await clock.sleep(PATIENCE_MS, done);
    if (done.aborted || hasReported) return;
    hasReported = true;
    notify(`turnout doctor: still reading ${what}; where there are thousands of Services this takes some seconds\n`);
  };
  return {
    async during(what, work) {
      const done = new AbortController();
      void reportLater(what, done.signal);
      try {
        return await work();
      } finally {
        done.abort();
      }
    },
  };
}
