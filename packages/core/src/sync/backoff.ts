/** The first wait after a failure, in ms; each later one is twice as long. */
const FIRST_MS = 250;

/** Waits after failures: each twice as long as the one before, up to a limit in ms. */
export class Backoff {
  readonly #maxMs: number;
  #count = 0;

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
  }

  /** How long to wait after one failure more, in ms. */
  next(): number {
    return Math.min(this.#maxMs, FIRST_MS * 2 ** this.#count++);
  }

  /** Begin anew. */
  reset(): void {
    this.#count = 0;
  }
}
