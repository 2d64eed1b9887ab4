import { ProxyError } from "@turnout/core";

const GROWTH_MAX = 32;

/** What is waited for. Times in ms. */
export interface PatienceOptions {
  /** For the least there can be to do. */
  readonly baseMs: number;
  /** More for each kB of input. */
  readonly perKBMs: number;
  /** So many times as long until it has succeeded once: the first time the kernel loads modules, and the tool is read from disk. */
  readonly firstFactor: number;
}

/**
 * How long to wait for a tool: as long as what was asked of it takes on a slow machine, and twice as long after each time that was too short.
 *
 * So a tool that hangs is noticed in time, and one that only has much to do is not killed for ever.
 */
export class Patience {
  readonly #options: PatienceOptions;
  #factor: number;

  constructor(options: PatienceOptions) {
    this.#options = options;
    this.#factor = options.firstFactor;
  }

  /** Have something done within the time that `bytes` of input take. @throws what `work` throws. */
  async during<T>(bytes: number, work: (timeoutMs: number) => Promise<T>): Promise<T> {
    const { baseMs, perKBMs } = this.#options;
    try {
      const result = await work((baseMs + perKBMs * Math.ceil(bytes / 1_000)) * this.#factor);
      this.#factor = 1;
      return result;
    } catch (error) {
      if (ProxyError.is(error, "timed_out")) this.#factor = Math.min(GROWTH_MAX, this.#factor * 2);
      throw error;
    }
  }
}
