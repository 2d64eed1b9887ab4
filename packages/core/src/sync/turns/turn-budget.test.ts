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

  it("is not more after rows that changed nothing, and bounded after large ones that changed little", () => {
    const budget = new TurnBudget(1_000);
    const { entries } = budget;
    for (let turn = 0; turn < 20; turn++) budget.took(entries, 0, 1);
    expect(budget.entries).toBe(entries);
    for (let turn = 0; turn < 20; turn++) budget.took(400_000, 20, 20);
    expect(budget.entries).toBe(6_400);
  });

  it.each([300, 110])("grows where each Service changes little and a turn takes %s ms whatever it does", (idleMs) => {
    const budget = new TurnBudget(1_000);
    let turns = 0;
    for (let left = 300; left > 0; turns++) {
      const services = Math.min(left, Math.max(1, Math.floor(budget.entries / 23)));
      budget.took(services * 23, services * 3, idleMs + services * 0.3);
      left -= services;
    }
    expect(turns).toBeLessThan(20);
  });

  it("is not less after work that no entries limited, and found again after a turn that was slow once", () => {
    const budget = new TurnBudget(1_000);
    const { entries } = budget;
    budget.took(0, 5_000, 400);
    expect(budget.entries).toBe(entries);
    for (const ms of [10, 400]) budget.took(23, ms / 2, ms);
    expect(budget.entries).toBeLessThan(23);
    for (let turn = 0; turn < 10; turn++) budget.took(Math.max(23, budget.entries), 3, 10);
    expect(budget.entries).toBeGreaterThan(1_000);
  });

  it("is as little as can be where a turn is over when it begins", () => {
    const budget = new TurnBudget(0);
    budget.took(1, 1, 0);
    expect(budget.entries).toBe(1);
  });
});
