/** How much work repairs may make now: time is saved up while there is nothing to repair, and spent by repairs. */
export interface RepairBudget {
  /** What may be spent, in ms; below 0: too much was spent. */
  readonly creditMs: number;
  readonly atMs: number;
}

/** The part of the time that goes on repairs while another program keeps changing Turnout's objects. */
const SHARE = 0.1;
/** What can be saved up, in ms: so much work is done at once before the share counts. */
const CREDIT_MAX_MS = 3_000;

/** A budget of somebody who has not repaired anything yet. */
export function freshBudget(nowMs: number): RepairBudget {
  return { creditMs: CREDIT_MAX_MS, atMs: nowMs };
}

/** How long the next repair has to wait, in ms; 0: it need not. */
export function repairWaitMs(budget: RepairBudget, nowMs: number): number {
  return Math.max(0, -saved(budget, nowMs) / SHARE);
}

/** The budget once a repair has cost so much; what has to be waited for never exceeds `maxWaitMs`. */
export function afterRepair(budget: RepairBudget, costMs: number, maxWaitMs: number, nowMs: number): RepairBudget {
  return { creditMs: Math.max(saved(budget, nowMs) - costMs, -SHARE * maxWaitMs), atMs: nowMs };
}

function saved({ creditMs, atMs }: RepairBudget, nowMs: number): number {
  return Math.min(CREDIT_MAX_MS, creditMs + SHARE * (nowMs - atMs));
}
