import { expect, test } from "vitest";
import { LIST, switchOf } from "./config-kinds.ts";

test("a switch takes the words that Go takes, and may stand alone", () => {
  const said = [undefined, true, "true", "T", "1", "false", "F", "0"] as const;
  expect(said.map((word) => switchOf("--once", word))).toEqual([false, true, true, true, true, false, false, false]);
  expect(() => switchOf("--once", "yes")).toThrow('[invalid_object] "yes" is neither true nor false: --once');
});

test.each([
  ["", []],
  ["a", ["a"]],
  ["a, b", ["a", " b"]],
  ["a,", ["a", ""]],
  ['"a,b","c""d"', ["a,b", 'c"d']],
  ["a\nb", ["a"]],
])("a list is one line of CSV, as in Go: %j", (text, parts) => {
  expect(LIST.fromFlag(text)).toEqual(parts);
});

test.each(['"a', 'a"b', '"a"b'])("a list with a stray quote is refused: %s", (text) => {
  expect(() => LIST.fromFlag(text)).toThrow("expected a list with commas");
});
