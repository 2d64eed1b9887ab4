import { expect, it } from "vitest";
import type { Plain } from "@turnout/core";
import { firstDifference } from "./first-difference.ts";

it.each([
  ["equal values", { a: [1, { b: "x" }] }, { a: [1, { b: "x" }] }, ""],
  ["plain values", 80, "80", 'value: 80 → "80"'],
  ["a member", { port: 80, to: "reject" }, { port: 80, to: "drop" }, 'to: "reject" → "drop"'],
  [
    "a member of a member of a list",
    { rules: [{ to: "a" }, { to: "b" }] },
    { rules: [{ to: "a" }, { to: "c" }] },
    'rules[1].to: "b" → "c"',
  ],
  ["one that is missing", { a: 1 }, { a: 1, b: 2 }, "b: absent → 2"],
  ["a list that is shorter", ["a", "b"], ["a"], '[1]: "b" → absent'],
  ["a list for a record", { a: [] }, { a: {} }, "a: [] → {}"],
  ["a long value", "", "x".repeat(200), `value: "" → "${"x".repeat(79)}…`],
] satisfies readonly (readonly [string, Plain, Plain, string])[])("%s", (_name, before, after, said) => {
  expect(firstDifference(before, after)).toBe(said);
});
