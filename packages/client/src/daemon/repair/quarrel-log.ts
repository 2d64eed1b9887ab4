import type { Clock, IPFamily, Log } from "@turnout/core";

/** So many changes in a row are told singly. */
const SINGLE_LINES = 3;
/** After this long without a change, in ms, the next one is told singly again. */
const QUIET_MS = 60_000;
/** A quarrel that goes on is told again after this long, in ms: who looks at the last lines of the log must find it. */
const REMIND_MS = 60_000;
const NOBODY = "no process was seen; the comparison found it";

/** What came of a repair. */
export interface Compared {
  /** Who is suspected; undefined: nobody was seen. */
  readonly what: string | undefined;
  /** How many objects were otherwise than we had left them. */
  readonly drifted: number;
  /** What was done to some of them. */
  readonly some: readonly string[];
}

/** What the log of changes works with. */
export interface QuarrelLogOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Hears of each difference: who made it, as far as the host tells, of how many objects, and what was done to some of them. */
  readonly onChange: (who: string, objects: number, some: readonly string[]) => void;
}

/** Tells of changes that somebody made to what is ours, and only of those: each at first, and once a minute how many while they go on. */
export class QuarrelLog {
  readonly #options: QuarrelLogOptions;
  #changes = 0;
  #untold = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor(options: QuarrelLogOptions) {
    this.#options = options;
  }

  /** A repair is done. */
  compared({ what, drifted, some }: Compared): void {
    const { family, clock, log, onChange } = this.#options;
    if (drifted === 0) {
      if (what !== undefined) log.debug("nothing of ours was changed", { family, what });
      return;
    }
    const nowMs = clock.nowMs();
    if (nowMs - this.#lastMs > QUIET_MS) this.#changes = 0;
    this.#lastMs = nowMs;
    this.#changes += 1;
    const fields = { family, what: what ?? NOBODY, objects: drifted, some: some.join(", ") };
    onChange(what ?? NOBODY, drifted, some);
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
