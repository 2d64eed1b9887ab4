import { expect, it } from "vitest";
import { comparePrecedence, isPrerelease } from "./versions.ts";

/** From old to new; the part with letters is the example of semver.org. */
const ORDERED = [
  "0.1.0",
  "0.1.1-nightly.20261124032520",
  "0.1.1-nightly.20261125032520",
  "0.1.1",
  "0.9.0",
  "0.10.0",
  "1.0.0-alpha",
  "1.0.0-alpha.1",
  "1.0.0-alpha.beta",
  "1.0.0-beta",
  "1.0.0-beta.2",
  "1.0.0-beta.11",
  "1.0.0-rc.1",
  "1.0.0",
];

it("versions are ordered as semver says", () => {
  for (const [at, one] of ORDERED.entries())
    for (const [where, other] of ORDERED.entries())
      expect([one, other, Math.sign(comparePrecedence(one, other))]).toEqual([one, other, Math.sign(at - where)]);
  expect(comparePrecedence("1.0.0+one", "1.0.0+other")).toBe(0);
});

it("those of nightly are made to be tried", () => {
  expect(["0.1.1-nightly.20261124032520", "0.1.1", "0.1.1+a-b"].map(isPrerelease)).toEqual([true, false, false]);
});
