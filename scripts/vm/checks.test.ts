import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { runVmChecks } from "./checks.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-checks-"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

it("reports each check when it ends, whatever became of those before", async () => {
  const file = join(folder, "report");
  vi.stubEnv("TURNOUT_VM_REPORT", file);
  const reports = (): { name: string; error?: { message: string; stack?: string } }[] =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { name: string });
  await runVmChecks({
    passes: () => {},
    fails: async () => Promise.reject(new Error("two\nlines")),
    "throws what is no error": () => {
      // eslint-disable-next-line no-throw-literal
      throw "a text";
    },
    "finds what was reported before": () => expect(reports()).toHaveLength(3),
  });
  expect(reports()).toEqual([
    { name: "passes" },
    { name: "fails", error: { message: "two\nlines", stack: expect.stringContaining("checks.test.ts") as string } },
    { name: "throws what is no error", error: { message: "a text" } },
    { name: "finds what was reported before" },
  ]);
});

it("is for guests only", async () => {
  vi.stubEnv("TURNOUT_VM_REPORT", undefined);
  await expect(runVmChecks({})).rejects.toThrow("played in a guest");
});
