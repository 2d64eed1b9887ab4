import { ProxyError } from "@turnout/core";

/** A small transaction takes some ms, on a slow machine beside another's large commit a second; a MB takes a third of a second. */
const [BASE_MS, PER_KB_MS] = [3_000, 10];
/** So many times as long until it has succeeded once: the first time the kernel loads modules, and the tool is read from disk. */
const FIRST_FACTOR = 4;
const GROWTH_MAX = 32;

/**
 * How long to wait for a tool: as long as what was asked of it takes on a slow machine, and twice as long after each time that was too short.
 *
 * So a tool that hangs is noticed in time, and one that only has much to do is not killed for ever.
 */
export class Patience {
  #factor = FIRST_FACTOR;

  /** Have something done within the time that `bytes` of input take. @throws what `work` throws. */
  async during<T>(bytes: number, work: (timeoutMs: number) => Promise<T>): Promise<T> {
    try {
      const result = await work((BASE_MS + PER_KB_MS * Math.ceil(bytes / 1_000)) * this.#factor);
      this.#factor = 1;
      return result;
    } catch (error) {
      if (ProxyError.is(error, "timed_out")) this.#factor = Math.min(GROWTH_MAX, this.#factor * 2);
      throw error;
    }
  }
}
