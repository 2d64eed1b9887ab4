import { expect, test } from "vitest";
import { switchOf } from "./config-kinds.ts";

test("a switch takes the words that Go takes, and may stand alone", () => {
  const said = [undefined, true, "true", "T", "1", "false", "F", "0"] as const;
  expect(said.map((word) => switchOf("--once", word))).toEqual([false, true, true, true, true, false, false, false]);
  expect(() => switchOf("--once", "yes")).toThrow('[invalid_object] "yes" is neither true nor false: --once');
});
