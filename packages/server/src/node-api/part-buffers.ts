/** Room for a part and its head; one row alone may be larger. */
const CAPACITY = 66_560;
/** Smaller messages have buffers of their own, which cost little. */
const LEAST = 16_384;
/** Of sixteen clients that are told everything at a time, two each. */
const FREE_MAX = 32;

/**
 * Memory for the parts of first states, used again when a part is out. A thousand clients that come at once get ten thousand parts; with new memory for
 * each, collecting garbage takes as long as all else.
 */
export class PartBuffers {
  readonly #free: ArrayBuffer[] = [];

  /** Get memory for a message, with whatever was in it before. */
  allocate(bytes: number): Buffer {
    if (bytes < LEAST || bytes > CAPACITY) return Buffer.allocUnsafe(bytes);
    return Buffer.from(this.#free.pop() ?? new ArrayBuffer(CAPACITY), 0, bytes);
  }

  /** Give a message back that nobody reads any more; once. */
  release({ buffer, length }: Buffer): void {
    const isOurs = length >= LEAST && buffer instanceof ArrayBuffer && buffer.byteLength === CAPACITY;
    if (isOurs && this.#free.length < FREE_MAX) this.#free.push(buffer);
  }
}
