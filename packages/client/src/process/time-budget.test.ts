import { TestClock } from "@turnout/core/testing";
import { expect, test } from "vitest";
import { TimeBudget } from "./time-budget.ts";

const RULES = { share: 0.1, creditMaxMs: 3_000, waitMaxMs: 30_000 };

test.each([
  ["nothing was spent yet", [], 0],
  ["one small piece of work", [20], 0],
  ["as much as was saved up", [1_500, 1_500], 0],
  ["more than was saved up: ten times what is owed", [2_000, 2_000], 10_000],
  ["far more: no longer than the longest wait", [500_000], 30_000],
])("%s", (_name, costs, waitMs) => {
  const budget = new TimeBudget(RULES, new TestClock(0));
  for (const costMs of costs) budget.spend(costMs);
  expect(budget.waitMs).toBe(waitMs);
});

test("what is owed is paid off by waiting, and no more is saved up than there is room for", async () => {
  const clock = new TestClock(0);
  const budget = new TimeBudget(RULES, clock);
  budget.spend(4_000);
  const waits: number[] = [];
  for (const ms of [0, 4_000, 6_000, 990_000]) {
    await clock.advance(ms);
    waits.push(budget.waitMs);
  }
  expect(waits).toEqual([10_000, 6_000, 0, 0]);
  budget.spend(4_000);
  expect(budget.waitMs).toBe(10_000);
});
