import type { Clock, IPFamily, Log } from "@turnout/core";

/** So many changes in a row are told singly. */
const SINGLE_LINES = 3;
/** Further ones are told together, this long after the first of them, in ms. After as long without any they are told singly again. */
const HELD_MS = 60_000;
/** So many are named of those who made what is told together. */
const NAMED_MAX = 3;
const NONE = "no process was seen; the comparison found it";

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
export interface ConflictLogOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Hears of each difference: who made it, as far as the host tells, of how many objects, and what was done to some of them. */
  readonly onChange: (who: string, objects: number, some: readonly string[]) => void;
  /** What is held back is told when it aborts. */
  readonly signal: AbortSignal;
}

/** Changes that are told together. */
interface Held {
  times: number;
  objects: number;
  /** Whoever made one, the last one last. */
  readonly who: Set<string>;
  last: string;
}

/** Tells of changes that somebody made to what is ours, and only of those: the first at once, and those that follow closely once a minute. */
export class ConflictLog {
  readonly #options: ConflictLogOptions;
  #changes = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #held: Held | undefined;

  constructor(options: ConflictLogOptions) {
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
    if (nowMs - this.#lastMs > HELD_MS) this.#changes = 0;
    this.#lastMs = nowMs;
    this.#changes += 1;
    const who = what ?? NONE;
    onChange(who, drifted, some);
    if (this.#changes > SINGLE_LINES) this.#hold(who, drifted, some.join(", "));
    else
      log.warn("another program changed Turnout's objects; they were repaired", {
        family,
        what: who,
        objects: drifted,
        some: some.join(", "),
      });
  }

  #hold(who: string, objects: number, some: string): void {
    if (this.#held === undefined) void this.#reportLater();
    const held = (this.#held ??= { times: 0, objects: 0, who: new Set(), last: "" });
    held.times += 1;
    held.objects += objects;
    held.who.delete(who);
    held.who.add(who);
    held.last = some === "" ? who : `${who}: ${some}`;
  }

  async #reportLater(): Promise<void> {
    const { family, clock, log, signal } = this.#options;
    await clock.sleep(HELD_MS, signal);
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return;
    const { times, objects, who, last } = held;
    log.warn("another program keeps changing Turnout's objects; they are repaired in at most a tenth of the time", {
      family,
      times,
      what: namesText([...who]),
      objects,
      last,
      hint: "what was not told singly is counted here. Is another proxy running in this network namespace? Stop one of them",
    });
  }
}

function namesText(names: readonly string[]): string {
  const others = names.length - NAMED_MAX;
  return `${names.slice(-NAMED_MAX).join("; ")}${others > 0 ? `; and ${others} more` : ""}`;
}
