import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { KERNEL_KITS, REST, startsChildren, withSeconds } from "./test-plan.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

it.each([...REST, ...KERNEL_KITS])("there are test files like %s", (glob) => {
  expect(globSync(glob, { cwd: ROOT })).not.toEqual([]);
});

it("records what files took next to what was recorded, and forgets what takes no second", () => {
  expect(
    withSeconds(
      { "b.test.ts": 7, "c.test.ts": 3 },
      new Map([
        ["c.test.ts", 400],
        ["a.test.ts", 1_600],
      ]),
    ),
  ).toEqual({
    "a.test.ts": 2,
    "b.test.ts": 7,
  });
});

describe("a test starts processes", () => {
  const FILES: Readonly<Record<string, string>> = {
    "/r/packages/x/src/a.test.ts": 'import { b } from "./b.ts";\nimport { child } from "./test-support/child.ts";',
    "/r/packages/x/src/b.ts": 'import { spawn } from "node:child_process";',
    "/r/packages/x/src/test-support/child.ts": 'import { nodeCommand } from "@turnout/house/vm";\nnodeCommand("x");',
    "/r/packages/x/src/b.test.ts": 'import { b } from "./b.ts";\nimport { a } from "./a.test.ts.ts";',
    "/r/packages/x/src/c.test.ts": 'import { Worker } from "node:worker_threads";',
    "/r/e2e/d.test.ts": 'import { site } from "./site.ts";',
    "/r/e2e/site.ts": 'import { d } from "./d.test.ts";\nimport { spawn } from "node:child_process";',
  };
  it.each([
    ["by what it shares with other tests", "packages/x/src/a.test.ts", true],
    ["not by its package's sources, which are in its imports", "packages/x/src/b.test.ts", false],
    ["itself", "packages/x/src/c.test.ts", true],
    ["by its laboratory", "e2e/d.test.ts", true],
  ])("%s", (_how, path, expected) => {
    expect(startsChildren(`/r/${path}`, (file) => FILES[file] ?? "")).toBe(expected);
  });
});
