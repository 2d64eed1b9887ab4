import type { Clock, IPFamily, Log, SyncedEvent } from "@turnout/core";
import { QuarrelLog } from "./quarrel-log.ts";
import { afterRepair, freshBudget, repairWaitMs, type RepairBudget } from "./repair-budget.ts";

/** What a repair pacer works with. */
export interface RepairPacerOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Compare everything with the host, soon; {@link RepairPacer.synced} is to be told when that is done. */
  readonly audit: () => void;
  /** Longest wait for a repair, in ms. */
  readonly maxWaitMs: number;
  /** Ends the waiting; nothing is repaired after. */
  readonly signal: AbortSignal;
}

/**
 * Decides when to repair what somebody else may have changed: at once, unless that would cost more than a share of the time.
 *
 * Two proxies with different wishes in one network namespace would otherwise undo each other's work as fast as they can, for ever. What a
 * repair costs is measured: a small table is mended many times a second, a large one now and then.
 */
export class RepairPacer {
  readonly #options: RepairPacerOptions;
  readonly #quarrel: QuarrelLog;
  #budget: RepairBudget;
  /** Who is suspected of what the next comparison may find; undefined: nobody. */
  #what: string | undefined;
  /** The same of the comparison that is asked for and not done yet. */
  #askedFor: string | undefined;
  #isWaiting = false;

  constructor(options: RepairPacerOptions) {
    this.#options = options;
    this.#quarrel = new QuarrelLog(options);
    this.#budget = freshBudget(options.clock.nowMs());
  }

  /** Somebody may have changed what is ours. */
  changed(what: string): void {
    // Whether the comparison under way looks before this change or after it can't be told: there will be another.
    this.#what ??= what;
    void this.#repair();
  }

  /** A sync is done; those that compared everything count. */
  synced({ full, durationMs, drifted }: Pick<SyncedEvent, "full" | "durationMs" | "drifted">): void {
    if (!full) return;
    const { clock, maxWaitMs } = this.#options;
    this.#budget = afterRepair(this.#budget, durationMs, maxWaitMs, clock.nowMs());
    this.#quarrel.compared(this.#askedFor, drifted);
    this.#askedFor = undefined;
    if (this.#what !== undefined) void this.#repair();
  }

  async #repair(): Promise<void> {
    const { clock, signal, audit } = this.#options;
    if (this.#isWaiting || this.#askedFor !== undefined || signal.aborted) return;
    const waitMs = repairWaitMs(this.#budget, clock.nowMs());
    if (waitMs > 0) {
      this.#isWaiting = true;
      await clock.sleep(waitMs, signal);
      this.#isWaiting = false;
      if (signal.aborted) return;
    }
    this.#askedFor = this.#what;
    this.#what = undefined;
    audit();
  }
}
