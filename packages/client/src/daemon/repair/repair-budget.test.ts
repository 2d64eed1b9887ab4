import { expect, test } from "vitest";
import { afterRepair, freshBudget, repairWaitMs } from "./repair-budget.ts";

test.each([
  ["nothing was repaired yet", [], 0],
  ["one small repair", [20], 0],
  ["as much as was saved up", [1_500, 1_500], 0],
  ["more than was saved up: ten times what is owed", [2_000, 2_000], 10_000],
  ["far more: no longer than the longest wait", [500_000], 30_000],
])("%s", (_name, costs, waitMs) => {
  const budget = costs.reduce((before, costMs) => afterRepair(before, costMs, 30_000, 0), freshBudget(0));
  expect(repairWaitMs(budget, 0)).toBe(waitMs);
});

test("what is owed is paid off by waiting, and no more is saved up than there is room for", () => {
  const owing = afterRepair(freshBudget(0), 4_000, 30_000, 0);
  expect([0, 4_000, 10_000, 1_000_000].map((nowMs) => repairWaitMs(owing, nowMs))).toEqual([10_000, 6_000, 0, 0]);
  const rested = afterRepair(owing, 4_000, 30_000, 1_000_000);
  expect(repairWaitMs(rested, 1_000_000)).toBe(10_000);
});
