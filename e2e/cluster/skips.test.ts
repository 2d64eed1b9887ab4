import { describe, expect, it } from "vitest";
import { SKIPS, sortSkips } from "./skips.ts";

describe("each skip", () => {
  it.each(SKIPS)("$match has a reason, a day on which it ends, and a pattern that reads", ({ match, reason, until }) => {
    expect(reason.length).toBeGreaterThan(20);
    expect(new Date(until).toISOString().slice(0, 10)).toBe(until);
    expect(new RegExp(match).test("")).toBe(false);
  });

  it("stands once", () => {
    expect(new Set(SKIPS.map(({ match }) => match)).size).toBe(SKIPS.length);
  });
});

it("a skip holds on its last day, and not on the next", () => {
  const skip = { match: "x", reason: "y", until: "2027-03-31" };
  expect(sortSkips([skip], "2027-03-31")).toEqual({ valid: [skip], expired: [] });
  expect(sortSkips([skip], "2027-04-01")).toEqual({ valid: [], expired: [skip] });
});
