import type { ClockReading } from "@turnout/core";

/** How large a budget is. */
export interface BudgetRules {
  /** Of the time, e.g. 0.1. */
  readonly share: number;
  /** What can be saved up, in ms: so much work is done at once before the share counts. */
  readonly creditMaxMs: number;
  /** What has to be waited for never exceeds this. */
  readonly waitMaxMs: number;
}

/** A part of the time that may be spent on something: saved up while it is not needed, and owed when too much was spent. */
export class TimeBudget {
  readonly #rules: BudgetRules;
  readonly #clock: Pick<ClockReading, "nowMs">;
  #creditMs: number;
  #atMs: number;

  constructor(rules: BudgetRules, clock: Pick<ClockReading, "nowMs">) {
    this.#rules = rules;
    this.#clock = clock;
    this.#creditMs = rules.creditMaxMs;
    this.#atMs = clock.nowMs();
  }

  /** How long the next piece of work has to wait, in ms; 0: it need not. */
  get waitMs(): number {
    return Math.max(0, -this.#saved() / this.#rules.share);
  }

  /** Note what a piece of work cost. */
  spend(costMs: number): void {
    const { share, waitMaxMs } = this.#rules;
    this.#creditMs = Math.max(this.#saved() - costMs, -share * waitMaxMs);
    this.#atMs = this.#clock.nowMs();
  }

  #saved(): number {
    const { share, creditMaxMs } = this.#rules;
    return Math.min(creditMaxMs, this.#creditMs + share * (this.#clock.nowMs() - this.#atMs));
  }
}
