import { assert, integer, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { formatDuration, parseDuration } from "./duration.ts";

describe("parseDuration", () => {
  test.each([
    ["zero without a unit", "0", 0],
    ["seconds", "30s", 30_000],
    ["minutes and seconds", "1m30s", 90_000],
    ["a fraction", "1.5h", 5_400_000],
    ["a fraction without a leading digit", ".5s", 500],
    ["milliseconds are not minutes", "250ms", 250],
    ["microseconds, either letter", "500us500µs", 1],
    ["a negative one", "-5s", -5000],
    ["what Go writes for a day", "24h0m0s", 86_400_000],
  ])("reads %s", (_name, text, ms) => {
    expect(parseDuration(text)).toBeCloseTo(ms, 9);
  });

  test.each([
    ["nothing", ""],
    ["a number without a unit", "30"],
    ["an unknown unit", "3d"],
    ["blanks", "1 s"],
    ["a unit alone", "s"],
    ["rubbish at the end", "1s!"],
    ["more than Go's 64 bits hold", "9999999h"],
  ])("refuses %s", (_name, text) => {
    expect(() => parseDuration(text)).toThrow(/invalid_object.*not a duration/);
  });

  test("reads back what formatDuration writes", () => {
    const readsBack = property(integer({ min: 0, max: 1_000_000_000 }), (ms) => Math.abs(parseDuration(formatDuration(ms)) - ms) < 1e-3);
    expect(() => assert(readsBack)).not.toThrow();
  });
});
