import { describe, expect, it } from "vitest";
import { interleave, median, percentile, summarize } from "./statistics.ts";

describe("percentile", () => {
  const hundred = Array.from({ length: 100 }, (_, k) => 100 - k);
  it.each([
    ["the smallest", 0, 1],
    ["nearest rank, not interpolated", 0.99, 99],
    ["the largest", 1, 100],
    ["between two ranks the upper", 0.005, 1],
  ])("%s", (_name, fraction, expected) => {
    expect(percentile(hundred, fraction)).toBe(expected);
  });

  it("of few samples the 99th is the largest", () => expect(percentile([3, 1, 2], 0.99)).toBe(3));
  it("sorts by size, not by text", () => expect(percentile([9, 10], 1)).toBe(10));
  it("has no answer without samples", () => expect(() => percentile([], 0.5)).toThrow(RangeError));
});

describe("median", () => {
  it.each([
    ["odd count", [5, 1, 3], 3],
    ["even count: the mean of two", [4, 1, 3, 2], 2.5],
    ["one", [7], 7],
  ])("%s", (_name, samples, expected) => {
    expect(median(samples)).toBe(expected);
  });

  it("has no answer without samples", () => expect(() => median([])).toThrow(RangeError));
});

it("sums up without touching the samples", () => {
  const samples = [3, 1, 2];
  expect(summarize(samples)).toEqual({ count: 3, min: 1, median: 2, p99: 3, max: 3 });
  expect(samples).toEqual([3, 1, 2]);
});

it("spreads each kind of run evenly over the whole time", () => {
  const order = interleave([
    { what: "ours", runs: 5 },
    { what: "B", runs: 3 },
    { what: "A", runs: 1 },
    { what: "none", runs: 0 },
  ]);
  expect(order).toEqual(["ours", "B", "ours", "ours", "B", "A", "ours", "B", "ours"]);
});
