import { expect, it } from "vitest";
import { defaultLayout, layoutsOf } from "./layout.ts";

const NAMES = ["session affinity", "trouble with the API server", "under load", "SCTP", "UDP flows"];

it("a name has one layout, always the same, and both are used", () => {
  const chosen = NAMES.map((name) => layoutsOf(name, {}));
  expect(chosen.map(({ length }) => length)).toEqual(NAMES.map(() => 1));
  expect(new Set(chosen.flat())).toEqual(new Set(["one process", "two processes"]));
  expect(NAMES.map((name) => layoutsOf(name, {}))).toEqual(chosen);
});

it("the environment chooses for all", () => {
  expect(NAMES.map((name) => layoutsOf(name, { TURNOUT_E2E_LAYOUT: "two" }))).toEqual(NAMES.map(() => ["two processes"]));
  expect(layoutsOf("SCTP", { TURNOUT_TESTS: "full" })).toEqual(["one process", "two processes"]);
  expect(layoutsOf("SCTP", { TURNOUT_TESTS: "full", TURNOUT_E2E_LAYOUT: "one" })).toEqual(["one process"]);
  expect([defaultLayout({}), defaultLayout({ TURNOUT_E2E_LAYOUT: "two" })]).toEqual(["one process", "two processes"]);
  expect(() => layoutsOf("SCTP", { TURNOUT_E2E_LAYOUT: "three" })).toThrow("is one, two or both, and not three");
});
