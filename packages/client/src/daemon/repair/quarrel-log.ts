import type { Clock, IPFamily, Log } from "@turnout/core";

/** So many changes in a row are told singly. */
const SINGLE_LINES = 3;
/** After this long without a change, in ms, the next one is told singly again. */
const QUIET_MS = 60_000;
/** A quarrel that goes on is told again after this long, in ms: who looks at the last lines of the log must find it. */
const REMIND_MS = 60_000;
const NOBODY = "no process was seen; the comparison found it";

/** Tells of changes that somebody made to what is ours, and only of those: each at first, and once a minute how many while they go on. */
export class QuarrelLog {
  readonly #options: { readonly family: IPFamily; readonly clock: Clock; readonly log: Log };
  #changes = 0;
  #untold = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor(options: { readonly family: IPFamily; readonly clock: Clock; readonly log: Log }) {
    this.#options = options;
  }

  /** Everything was compared, because of `what` if anything was seen: so many objects were otherwise than we had left them. */
  compared(what: string | undefined, drifted: number): void {
    const { family, clock, log } = this.#options;
    if (drifted === 0) {
      if (what !== undefined) log.debug("nothing of ours was changed", { family, what });
      return;
    }
    const nowMs = clock.nowMs();
    if (nowMs - this.#lastMs > QUIET_MS) this.#changes = 0;
    this.#lastMs = nowMs;
    this.#changes += 1;
    const fields = { family, what: what ?? NOBODY, objects: drifted };
    if (this.#changes <= SINGLE_LINES) {
      this.#untold = 0;
      log.warn("another program changed Turnout's objects; they were repaired", fields);
      return;
    }
    this.#untold += 1;
    if (this.#changes > SINGLE_LINES + 1 && nowMs - this.#toldMs < REMIND_MS) return;
    const hint = "is another proxy running in this network namespace? stop one of them";
    log.warn("another program keeps changing Turnout's objects; they are repaired in at most a tenth of the time", {
      ...fields,
      times: this.#untold,
      hint,
    });
    this.#toldMs = nowMs;
    this.#untold = 0;
  }
}
