import { ProxyError, type Clock } from "@turnout/core";
import { Watchdog } from "./watchdog.ts";

/**
 * The objects that a watch-list sends before the bookmark that ends them.
 *
 * Shape: bounded in silence, not in duration. Each ADDED event of the first objects begins the time anew. Another event shows that they are over; from there on
 * only the bookmark is waited for, as a server that ignores the parameters of watch-list goes on with events for ever.
 */
export class InitialEvents {
  /** Keys of what is there. */
  readonly seen: Set<string> = new Set<string>();
  /** How many of them were new or changed. */
  changed = 0;
  readonly #silent = new AbortController();
  readonly #silenceMs: number;
  readonly #dog: Watchdog;
  #isPastObjects = false;
  #isComplete = false;

  /** The time begins. */
  constructor(clock: Clock, silenceMs: number) {
    this.#silenceMs = silenceMs;
    this.#dog = new Watchdog(clock, silenceMs, () => this.#silent.abort());
  }

  /** Aborts when the time is up. */
  get silent(): AbortSignal {
    return this.#silent.signal;
  }

  /** Why it was aborted; undefined: it was not. */
  get timeout(): ProxyError | undefined {
    if (!this.#silent.signal.aborted) return undefined;
    const seconds = this.#silenceMs / 1000;
    return new ProxyError("timed_out", `the watch-list brought no object for ${seconds} s, and did not end its first objects`);
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** An event came that doesn't end them. */
  heard(isAdded: boolean): void {
    if (!isAdded) this.#isPastObjects = true;
    if (!this.#isPastObjects) this.#dog.restart();
  }

  /** The bookmark came. */
  complete(): void {
    this.#isComplete = true;
    this.stop();
  }

  /** No time is counted any more. */
  stop(): void {
    this.#dog.stop();
  }
}
