import { describe, expect, it } from "vitest";
import { TurnBudget } from "./turn-budget.ts";

/** What turns take one after the other on a host with this cost, in ms, where more waits than a turn can do. */
function turnsOn(budget: TurnBudget, cost: (entries: number) => number, count: number): readonly number[] {
  return Array.from({ length: count }, () => {
    const ms = cost(budget.entries);
    budget.took(budget.entries, budget.entries, ms);
    return ms;
  });
}

describe("the work of one turn", () => {
  it.each([0.001, 0.1, 5])("comes to what a turn should take where an entry costs %s ms", (perEntryMs) => {
    const took = turnsOn(new TurnBudget(1_000), (entries) => 1 + entries * perEntryMs, 30).slice(-10);
    // An entry of 5 ms is as small as it gets.
    const mostMs = Math.max(201, perEntryMs * 50 + 1);
    expect(Math.max(...took)).toBeLessThanOrEqual(mostMs);
    expect(Math.max(...took)).toBeGreaterThan(50);
  });

  it("is not cut to nothing where a turn takes long however little it does", () => {
    const budget = new TurnBudget(1_000);
    const took = turnsOn(budget, (entries) => 2_000 + entries, 60).slice(-10);
    expect(Math.max(...took)).toBeLessThan(4_200);
    expect(budget.entries).toBeGreaterThan(500);
  });

  it("is found again when entries cost a hundred times as much all at once, in one turn", () => {
    const budget = new TurnBudget(1_000);
    turnsOn(budget, (entries) => entries * 0.05, 20);
    expect(
      turnsOn(budget, (entries) => entries * 5, 3)
        .slice(1)
        .every((ms) => ms <= 250),
    ).toBe(true);
  });

  it("does not grow by turns that had less to do", () => {
    const budget = new TurnBudget(1_000);
    const { entries } = budget;
    for (let turn = 0; turn < 20; turn++) budget.took(10, 10, 1);
    expect(budget.entries).toBe(entries);
  });

  it("is not more after rows that changed nothing, or a large one that changed little", () => {
    const budget = new TurnBudget(1_000);
    const { entries } = budget;
    for (let turn = 0; turn < 20; turn++) {
      budget.took(entries, 0, 1);
      budget.took(400_000, 20, turn % 2 === 0 ? 20 : 200);
    }
    expect(budget.entries).toBe(entries);
  });

  it("is as little as can be where a turn is over when it begins", () => {
    const budget = new TurnBudget(0);
    budget.took(1, 1, 0);
    expect(budget.entries).toBe(1);
  });
});
