import { describe, expect, it } from "vitest";
import { cellsOf, goalsOf } from "./case-table.ts";
import type { CaseRow, GoalSpec } from "./case-table.ts";
import { CASES } from "./cases/index.ts";

const row = (services: number, ms: readonly number[], more: Partial<CaseRow> = {}): CaseRow => ({
  shape: { services, endpoints: 10 },
  variant: "nft",
  results: { "": ms.map((one) => ({ cold: { ms: one }, version: "1.2" })), base: [{ cold: { ms: 10 } }] },
  ...more,
});
const cells = (...cell: readonly string[]): readonly string[] => cellsOf({ one: cell }, row(1_000, [30, 10, 20]));

describe("cells", () => {
  it.each([
    ["{size}: {variant} {version}", "1,000 x 10: nft 1.2"],
    ["{time runs cold.ms}", "20.0 ms (10.0 ms–30.0 ms, 3 runs)"],
    ["{time cold.ms} / {time max cold.ms}", "20.0 ms / 30.0 ms"],
    ["{ratio cold.ms / base:cold.ms}", "2.0x"],
    ["{time base:cold.ms - cold.ms}", "−10.0 ms"],
    ["{plain count cold.ms}", "3"],
    ["{time warm.ms}", ""],
  ])("%s", (cell, text) => expect(cells(cell)).toEqual([text]));

  it("takes the first of several that has its numbers", () => {
    expect(cells("{time warm.ms}", "not run")).toEqual(["not run"]);
    expect(cells("{time cold.ms}", "not run")).toEqual(["20.0 ms"]);
  });
  it("knows no other format", () => expect(() => cells("{hours cold.ms}")).toThrow("hours"));
});

describe("targets", () => {
  const rows = [row(100, [10]), row(1_000, [20]), row(1_000, [50], { variant: "iptables" })];
  const goal = (more: Partial<GoalSpec>): unknown[] =>
    goalsOf([{ at: "1000x10", variants: ["nft"], what: "start at {size}", value: "time cold.ms", ...more }], rows).map((one) => [
      one.what,
      one.wanted,
      one.measured,
      one.isMet,
    ]);

  it.each<[Partial<GoalSpec>, readonly unknown[]]>([
    [{ under: 20 }, ["start at 1,000 x 10", "under 20.0 ms", "20.0 ms", false]],
    [{ atMost: 20 }, ["start at 1,000 x 10", "at most 20.0 ms", "20.0 ms", true]],
    [{ atLeast: 15, wanted: "{limit} or more" }, ["start at 1,000 x 10", "15.0 ms or more", "20.0 ms", true]],
    [{ under: 1.5, against: "100x10" }, ["start at 1,000 x 10", "under 1.50x", "2.0x", false]],
    [{ under: 1, beside: "iptables", wanted: "ahead of {limit}" }, ["start at 1,000 x 10", "ahead of 50.0 ms", "20.0 ms", true]],
  ])("%j", (more, expected) => expect(goal(more)).toEqual([expected]));

  it("says nothing where there is nothing to compare with", () => {
    expect(goal({ under: 1, against: "200x10" })).toEqual([]);
    expect(goal({ under: 1, at: "300x10" })).toEqual([]);
    expect(() => goal({})).toThrow("no limit");
  });
});

it("reads all benches", () => {
  expect(CASES.length).toBe(22);
  expect(new Set(CASES.map(({ name }) => name)).size).toBe(22);
});
