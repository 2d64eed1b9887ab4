import { expect, it } from "vitest";
import { someOf } from "./some-of.ts";

it("plays a share in the normal run, and all in the full run", () => {
  const all = ["a", "b", "c", "d", "e"];
  expect(someOf(all, { oneOf: 2 }, {})).toEqual(["a", "c", "e"]);
  expect(someOf(all, { oneOf: 2, from: 1 }, {})).toEqual(["b", "d"]);
  expect(someOf(all, { oneOf: 2 }, { TURNOUT_E2E: "full" })).toEqual(all);
});
