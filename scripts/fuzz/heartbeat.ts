import { INPUT_BYTES_MAX } from "./target.ts";

const WORDS = 3;

/** What is being played, in memory that two threads share: whoever watches sees it even when the player hangs, or is no more. */
export class Heartbeat {
  readonly shared: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(WORDS * 4 + INPUT_BYTES_MAX)) {
    this.shared = shared;
    this.#words = new Int32Array(shared, 0, WORDS);
    this.#bytes = new Uint8Array(shared, WORDS * 4);
  }

  /** Say what comes now: an input of the target with this index. */
  beat(target: number, input: Buffer): void {
    this.#bytes.set(input);
    Atomics.store(this.#words, 1, target);
    Atomics.store(this.#words, 2, input.length);
    Atomics.add(this.#words, 0, 1);
  }

  /** How many beats there were. */
  get count(): number {
    return Atomics.load(this.#words, 0);
  }

  /** What was said last. */
  get last(): { readonly target: number; readonly input: Buffer } {
    return { target: Atomics.load(this.#words, 1), input: Buffer.from(this.#bytes.slice(0, Atomics.load(this.#words, 2))) };
  }
}
