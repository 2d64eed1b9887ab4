import type { Clock, Drift, IPFamily, LeftObjects, Log, SyncedEvent } from "@turnout/core";
import { TimeBudget } from "../../process/time-budget.ts";

/** So many changes in a row are told singly. */
const SINGLE_LINES = 3;
/** Further ones are told together, this long after the first of them, in ms. After as long without any they are told singly again. */
const HELD_MS = 60_000;
/** So many are named of those who made what is told together. */
const NAMED_MAX = 3;
const NONE = "no process was seen; the comparison found it";

/** What came of a repair. */
interface Compared {
  /** Who is suspected; undefined: nobody was seen. */
  readonly what: string | undefined;
  /** How many objects were otherwise than we had left them. */
  readonly drifted: number;
  /** What was done to some of them. */
  readonly some: readonly string[];
}

/** What the log of changes works with. */
interface ConflictLogOptions {
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
class ConflictLog {
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

/** Who is suspected of having changed what is ours, and how much of it. */
interface SuspectedChange {
  /** Who did what first, for people. */
  readonly what: string;
  /** What was done, one thing after another; undefined: it may be anything. */
  left: LeftObjects[] | undefined;
}

/** What a repair pacer works with. */
export interface RepairPacerOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Compare everything with the host, soon; {@link RepairPacer.synced} is to be told when that is done. */
  readonly audit: () => void;
  /** Mend just what somebody was seen to do, soon; as above. */
  readonly fix: (left: LeftObjects) => void;
  /** As {@link ConflictLogOptions.onChange}. */
  readonly onChange: ConflictLogOptions["onChange"];
  /** Longest wait for a repair, in ms. */
  readonly maxWaitMs: number;
  /** Ends the waiting; nothing is repaired after. */
  readonly signal: AbortSignal;
}

/** The part of the time that goes on repairs while another program keeps changing Turnout's objects. */
const SHARE = 0.1;
/** So much work is done at once before the share counts. */
const CREDIT_MAX_MS = 3_000;

/** What of a sync tells that a repair is done. */
export type RepairSync = Pick<SyncedEvent, "full" | "repaired" | "durationMs" | "drifted" | "driftedSome">;

/**
 * Decides when to repair what somebody else may have changed: at once, unless that would cost more than a share of the time.
 *
 * Two proxies with different wishes in one network namespace would otherwise undo each other's work as fast as they can, for ever. What a
 * repair costs is measured: a small table is mended many times a second, a large one now and then.
 */
export class RepairPacer {
  readonly #options: RepairPacerOptions;
  readonly #conflict: ConflictLog;
  readonly #budget: TimeBudget;
  /** Who is suspected of what the next repair may find; undefined: nobody. */
  #suspectedChange: SuspectedChange | undefined;
  /** The same of the repair that is asked for and not done yet. */
  #askedFor: SuspectedChange | undefined;
  #isWaiting = false;

  constructor(options: RepairPacerOptions) {
    this.#options = options;
    this.#conflict = new ConflictLog(options);
    this.#budget = new TimeBudget({ share: SHARE, creditMaxMs: CREDIT_MAX_MS, waitMaxMs: options.maxWaitMs }, options.clock);
  }

  /** Somebody may have changed what is ours. */
  changed(drift: Omit<Drift, "kind">): void {
    // Whether the repair under way looks before this change or after it can't be told: there will be another.
    const { what, left } = drift;
    const suspected = (this.#suspectedChange ??= { what, left: [] });
    if (left === undefined) suspected.left = undefined;
    else if (left === "nothing" || "covers" in left || left.size > 0) suspected.left?.push(left);
    void this.#repair();
  }

  /** A sync is done; those that compared everything, or mended what was told, count. */
  synced({ full, repaired, durationMs, drifted, driftedSome }: RepairSync): void {
    if (!full && !repaired) return;
    this.#budget.spend(durationMs);
    this.#conflict.compared({ what: this.#askedFor?.what, drifted, some: driftedSome });
    this.#askedFor = undefined;
    if (this.#suspectedChange !== undefined) void this.#repair();
  }

  async #repair(): Promise<void> {
    const { clock, signal, audit, fix } = this.#options;
    if (this.#isWaiting || this.#askedFor !== undefined || signal.aborted) return;
    const { waitMs } = this.#budget;
    if (waitMs > 0) {
      this.#isWaiting = true;
      await clock.sleep(waitMs, signal);
      this.#isWaiting = false;
      if (signal.aborted) return;
    }
    const suspectedChange = this.#suspectedChange;
    this.#askedFor = suspectedChange;
    this.#suspectedChange = undefined;
    if (suspectedChange?.left === undefined) audit();
    else if (suspectedChange.left.length > 0) for (const left of suspectedChange.left) fix(left);
    // Nothing of ours was touched: there is nothing to wait for.
    else this.#askedFor = undefined;
  }
}
