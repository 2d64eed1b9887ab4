import type { Clock, Drift, IPFamily, LeftObjects, Log, SyncedEvent } from "@turnout/core";
import { ConflictLog, type ConflictLogOptions } from "./conflict-log.ts";
import { afterRepair, freshBudget, repairWaitMs, type RepairBudget } from "./repair-budget.ts";

/** Who is suspected of having changed what is ours, and how much of it. */
class SuspectedChange {
  /** Who did what first, for people. */
  readonly what: string;
  #left: LeftObjects[] | undefined = [];

  constructor(what: string) {
    this.what = what;
  }

  /** What was done, one thing after another; undefined: it may be anything. */
  get left(): readonly LeftObjects[] | undefined {
    return this.#left;
  }

  /** Somebody left so much of our objects; undefined: nobody knows. */
  add(left: LeftObjects | undefined): void {
    if (left === undefined) this.#left = undefined;
    else if (left === "nothing" || "covers" in left || left.size > 0) this.#left?.push(left);
  }
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
  #budget: RepairBudget;
  /** Who is suspected of what the next repair may find; undefined: nobody. */
  #suspectedChange: SuspectedChange | undefined;
  /** The same of the repair that is asked for and not done yet. */
  #askedFor: SuspectedChange | undefined;
  #isWaiting = false;

  constructor(options: RepairPacerOptions) {
    this.#options = options;
    this.#conflict = new ConflictLog(options);
    this.#budget = freshBudget(options.clock.nowMs());
  }

  /** Somebody may have changed what is ours. */
  changed(drift: Omit<Drift, "kind">): void {
    // Whether the repair under way looks before this change or after it can't be told: there will be another.
    this.#suspectedChange ??= new SuspectedChange(drift.what);
    this.#suspectedChange.add(drift.left);
    void this.#repair();
  }

  /** A sync is done; those that compared everything, or mended what was told, count. */
  synced({ full, repaired, durationMs, drifted, driftedSome }: RepairSync): void {
    if (!full && !repaired) return;
    const { clock, maxWaitMs } = this.#options;
    this.#budget = afterRepair(this.#budget, durationMs, maxWaitMs, clock.nowMs());
    this.#conflict.compared({ what: this.#askedFor?.what, drifted, some: driftedSome });
    this.#askedFor = undefined;
    if (this.#suspectedChange !== undefined) void this.#repair();
  }

  async #repair(): Promise<void> {
    const { clock, signal, audit, fix } = this.#options;
    if (this.#isWaiting || this.#askedFor !== undefined || signal.aborted) return;
    const waitMs = repairWaitMs(this.#budget, clock.nowMs());
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
