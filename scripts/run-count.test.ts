import { expect, it } from "vitest";
import { closingLine, countRun, isNamed, parseAllowedSkips } from "./run-count.ts";
import type { FinishedTest } from "./run-count.ts";

const allowed = parseAllowedSkips("# a comment\n\ndocker  # kind only\nkernel>=6.6\n");

function finished(state: FinishedTest["state"], unmetNeeds?: readonly string[]): FinishedTest {
  return { name: `a ${state} test`, state, unmetNeeds };
}

it("counts what passed, failed and was skipped for an allowed reason", () => {
  const tests = [finished("passed"), finished("passed"), finished("failed"), finished("skipped", ["docker (not installed)"])];
  expect(closingLine(countRun(tests, 0, allowed))).toBe("2 passed, 1 failed, 1 skipped");
});

it("counts files that did not load, errors outside tests and tests that never ran as failed", () => {
  expect(closingLine(countRun([finished("passed"), finished("pending")], 2, allowed))).toBe("1 passed, 3 failed, 0 skipped");
});

it("fails a skip without a reason", () => {
  const count = countRun([finished("skipped")], 0, allowed);
  expect(closingLine(count)).toBe("0 passed, 1 failed, 0 skipped");
  expect(count.complaints).toEqual(["skipped without a proven reason: a skipped test: use needs(…) of scripts/needs.ts"]);
});

it("fails a skip when one of its reasons isn't on the list", () => {
  const count = countRun([finished("skipped", ["kernel>=6.6 (found 6.1)", "root (not root)"])], 0, allowed);
  expect(closingLine(count)).toBe("0 passed, 1 failed, 0 skipped");
  expect(count.complaints[0]).toContain("needs root (not root)");
});

it("takes a test for asked for when its groups and its name match what -t was given", () => {
  const names = ["a group > of tests > one", "a group > of tests > two", "a > b"];
  const named = (pattern?: RegExp): readonly string[] => names.filter((name) => isNamed(name, pattern));
  expect(named()).toEqual(names);
  expect(named(/tests > (one|three)$/)).toEqual(["a group > of tests > one"]);
  expect(named(/^group/)).toEqual([]);
});
