import type { Clock } from "@turnout/core";

/** How many a semaphore lets in, and for how long. */
export interface SemaphoreOptions {
  readonly most: number;
  /** Whoever is in for longer is counted no more: somebody slow holds up nobody for longer than this. */
  readonly patienceMs: number;
  readonly clock: Clock;
}

/** Somebody who waits. */
interface Ticket {
  isIn: boolean;
  readonly wake: () => void;
}

/**
 * Lets a few in at a time, in the order in which they came.
 *
 * A thousand clients that come at once, after a node-state server was started again, all want everything. Served all together, each would
 * have it when the last has, and parts of all their answers would be in memory; served in turn, most have it far earlier.
 */
export class Semaphore {
  readonly #options: SemaphoreOptions;
  readonly #waiting = new Set<Ticket>();
  #inside = 0;

  constructor(options: SemaphoreOptions) {
    this.#options = options;
  }

  /** Wait to be let in; returns the way out, to be called once done. An abort ends the wait, and then there is nothing to leave. */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (this.#inside < this.#options.most) this.#inside += 1;
    else if (!(await this.#wait(signal))) return () => undefined;
    const stay = new AbortController();
    const leave = (): void => {
      if (stay.signal.aborted) return;
      stay.abort();
      this.#next();
    };
    void this.#options.clock.sleep(this.#options.patienceMs, stay.signal).then(leave);
    return leave;
  }

  async #wait(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    const ticket: Ticket = { isIn: false, wake };
    this.#waiting.add(ticket);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    signal.removeEventListener("abort", wake);
    this.#waiting.delete(ticket);
    return ticket.isIn;
  }

  /** The place of who left is that of who has waited longest. */
  #next(): void {
    const [ticket] = this.#waiting;
    if (ticket === undefined) {
      this.#inside -= 1;
      return;
    }
    this.#waiting.delete(ticket);
    ticket.isIn = true;
    ticket.wake();
  }
}
