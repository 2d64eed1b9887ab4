import type { Clock, Log } from "@turnout/core";

/** What a hold works with. */
export interface RemovalDelayOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** How many items the node-state server told before, and has not told again. */
  readonly missing: () => number;
  /** They are gone. */
  readonly onRelease: () => void;
}

/** So long nothing may come before what was told counts as everything. */
const QUIET_MS = 3_000;
/** A node-state server that is never quiet has told everything by then. kpng's informers tell all again every 30 s. */
const LONGEST_MS = 30_000;

/**
 * Keeps what a kpng server has not told again after a new beginning, until it may be taken for gone.
 *
 * A node-state server that was started anew sends its first Sync as soon as each of its lists has one object: thousands of Services may follow later.
 * Edges: the stream's end ends the hold and takes nothing away; the next stream begins another.
 * @source kpng server/jobs/kube2store: it marks a set synced from inside an event handler
 */
export class RemovalDelay {
  readonly #options: RemovalDelayOptions;
  #heardMs = 0;
  #running: AbortController | undefined;

  constructor(options: RemovalDelayOptions) {
    this.#options = options;
  }

  /** The stream said something. */
  heard(): void {
    this.#heardMs = this.#options.clock.nowMs();
  }

  /** A Sync was taken in: begin to wait if something is missing, and end when nothing is any more. */
  synced(): void {
    const { log, missing } = this.#options;
    const items = missing();
    if (items > 0 && this.#running === undefined) {
      log.info("the kpng server sent less than before; what is missing stays in force until it has been quiet", {
        items,
        quietMs: QUIET_MS,
      });
      this.#running = new AbortController();
      void this.#run(this.#running.signal);
    } else if (items === 0) this.stop();
  }

  /** The stream is over, or begins anew. */
  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, missing, onRelease } = this.#options;
    const beganMs = clock.nowMs();
    for (;;) {
      const leftMs = Math.min(this.#heardMs + QUIET_MS, beganMs + LONGEST_MS) - clock.nowMs();
      if (leftMs <= 0) break;
      await clock.sleep(leftMs, signal);
      if (signal.aborted) return;
    }
    this.#running = undefined;
    log.info("what the kpng server no longer sends is gone", { items: missing(), afterMs: Math.round(clock.nowMs() - beganMs) });
    onRelease();
  }
}
