import { expect, it } from "vitest";
import { shareSeed, someOf } from "./some-of.ts";

const ALL = ["a", "b", "c", "d", "e"];

it("runs another share each day, and all of them within as many days as there are shares", () => {
  expect(someOf(ALL, { oneOf: 2 }, { TURNOUT_SHARE: "20784" })).toEqual(["a", "c", "e"]);
  expect(someOf(ALL, { oneOf: 2 }, { TURNOUT_SHARE: "20785" })).toEqual(["b", "d"]);
});

it.each(["", "abc", "-1", "1.5"])("refuses TURNOUT_SHARE=%s, with which no test would be chosen", (text) => {
  expect(() => shareSeed({ TURNOUT_SHARE: text })).toThrow(`TURNOUT_SHARE=${text} is no whole number from 0`);
});

it("runs all in the full run, and whole kernel kits in the run of the rest", () => {
  expect(someOf(ALL, { oneOf: 2 }, { TURNOUT_TESTS: "full" })).toEqual(ALL);
  expect(someOf(ALL, { oneOf: 2, isKernelKit: true }, { TURNOUT_TESTS: "rest" })).toEqual(ALL);
  expect(someOf(ALL, { oneOf: 5 }, { TURNOUT_TESTS: "rest", TURNOUT_SHARE: "5" })).toEqual(["a"]);
});
