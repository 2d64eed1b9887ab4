import type { Clock, IPFamily, Log } from "@turnout/core";

/** What a repair pacer works with. */
export interface RepairPacerOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Compare everything with the host. */
  readonly audit: () => void;
  /** Longest time between two audits of one quarrel, in ms. */
  readonly maxWaitMs: number;
}

/** Notifications this close together, in ms, are one change of somebody's. */
const BURST_MS = 100;
/** So many changes in a row are repaired at once. */
const PROMPT_REPAIRS = 3;
const FIRST_WAIT_MS = 1_000;
/** After this long without a change, in ms, the next one is repaired at once again. */
const QUIET_MS = 60_000;
/** A quarrel that goes on is told again after this long, in ms: who looks at the last lines of the log must find it. */
const REMIND_MS = 60_000;

/**
 * Decides when to repair what somebody else changed: at once, unless somebody keeps changing it.
 *
 * Two proxies with different wishes in one network namespace would otherwise undo each other's work ten times a second,
 * for ever, and fill the log. From the fourth change on the waits double, up to `maxWaitMs`, and a line each minute says why.
 */
export class RepairPacer {
  readonly #options: RepairPacerOptions;
  #repairs = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #toldMs = Number.NEGATIVE_INFINITY;
  #isWaiting = false;

  constructor(options: RepairPacerOptions) {
    this.#options = options;
  }

  /** Somebody changed what is ours. Resolves when it has been dealt with, or `signal` aborted. */
  async changed(what: string, signal: AbortSignal): Promise<void> {
    const { family, clock, log, audit, maxWaitMs } = this.#options;
    // The audit that is waited for will see this change too.
    if (this.#isWaiting) return;
    const nowMs = clock.nowMs();
    // It may have come after the audit's look at the host, so that looks again.
    if (nowMs - this.#lastMs < BURST_MS && this.#repairs <= PROMPT_REPAIRS) return audit();
    if (nowMs - this.#lastMs > QUIET_MS + maxWaitMs) this.#repairs = 0;
    this.#repairs += 1;
    const doublings = this.#repairs - PROMPT_REPAIRS - 1;
    if (doublings < 0) log.warn("somebody changed what is ours, comparing everything with the host", { family, what });
    const waitMs = doublings < 0 ? 0 : Math.max(0, this.#lastMs + Math.min(maxWaitMs, FIRST_WAIT_MS * 2 ** doublings) - nowMs);
    if (doublings === 0 || (doublings > 0 && nowMs - this.#toldMs >= REMIND_MS)) {
      this.#toldMs = nowMs;
      log.warn("somebody keeps changing what is ours, repairing it less often", {
        family,
        what,
        waitMs,
        hint: "is another proxy running in this network namespace? stop one of them",
      });
    }
    if (waitMs > 0) {
      this.#isWaiting = true;
      await clock.sleep(waitMs, signal);
      this.#isWaiting = false;
    }
    this.#lastMs = clock.nowMs();
    if (!signal.aborted) audit();
  }
}
