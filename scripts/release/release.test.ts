import { describe, expect, it } from "vitest";
import { contentProblems, type Contents } from "./contents.ts";
import { look, tableText } from "./findings.ts";
import { isAllowed } from "./licences.ts";
import { chartWithVersion } from "./raise-versions.ts";

const TEXTS = { "README.md": "", "CHANGELOG.md": "", LICENSE: "the licence", "dist/index.js": "", "dist/index.d.ts": "", "bin/tool": "" };

function contents(texts: Readonly<Record<string, string>>, programs: readonly string[] = ["bin/tool"]): Contents {
  const exports = { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" } };
  const manifest = { name: "a", version: "1.0.0", license: "Apache-2.0", exports, bin: { tool: "bin/tool" } };
  return { manifest, files: Object.keys(texts), texts: new Map(Object.entries(texts)), programs: new Set(programs) };
}

describe("a package's contents", () => {
  it("are right with all that its doors name", () => {
    expect(contentProblems(contents(TEXTS), "the licence", ["/home/me"])).toEqual([]);
  });

  it.each([
    ["a door without types", { ...TEXTS, "dist/index.d.ts": undefined }, "lacks dist/index.d.ts"],
    ["no licence", { ...TEXTS, LICENSE: undefined }, "lacks LICENSE"],
    ["another licence", { ...TEXTS, LICENSE: "mine" }, "has another LICENSE than the repository"],
    ["a test", { ...TEXTS, "dist/a.test.js": "" }, "ships dist/a.test.js"],
    ["what tests share", { ...TEXTS, "src/test-support/world.ts": "" }, "ships src/test-support/world.ts"],
    ["the compiler's notes", { ...TEXTS, "dist/.tsbuildinfo": "" }, "ships dist/.tsbuildinfo"],
    ["a path of this machine", { ...TEXTS, "dist/index.js.map": '["/home/me/src/index.ts"]' }, "dist/index.js.map names /home/me"],
  ])("are wrong with %s", (_, texts: Readonly<Record<string, string | undefined>>, problem) => {
    const there = Object.fromEntries(Object.entries(texts).filter((entry): entry is [string, string] => entry[1] !== undefined));
    expect(contentProblems(contents(there), "the licence", ["/home/me"])).toEqual([problem]);
  });

  it("are wrong with a program that can't be executed", () => {
    expect(contentProblems(contents(TEXTS, []), "the licence", [])).toEqual(["bin/tool can't be executed"]);
  });
});

it.each([
  ["MIT", true],
  ["(MIT OR GPL-3.0-only)", true],
  ["MIT AND CC0-1.0", true],
  ["MIT AND GPL-3.0-only", false],
  ["none stated", false],
])("the licence %s of a dependency is allowed: %s", (expression, allowed) => {
  expect(isAllowed(expression)).toBe(allowed);
});

it("the table shows figures, and what failed below it", async () => {
  const failing = async (): Promise<void> => {
    throw new Error("no such door");
  };
  const checks = [
    await look("core", "MB", async () => ({ detail: "1.2" })),
    await look("core", "import", failing),
    await look("demo", "played", async () => undefined),
  ];
  expect(tableText(checks)).toBe(
    "|      | MB  | import | played |\n| ---- | --- | ------ | ------ |\n| core | 1.2 | FAILED | -      |\n| demo | -   | -      | ok     |\n\ncore: import: no such door\n",
  );
});

it("the chart gets the command's version, and keeps all else", () => {
  const chart = '# of @turnout/cli\nversion: 0.1.0\nappVersion: 0.1.0\nkubeVersion: ">=1.29.0-0"\n';
  expect(chartWithVersion(chart, "0.2.0")).toBe('# of @turnout/cli\nversion: 0.2.0\nappVersion: 0.2.0\nkubeVersion: ">=1.29.0-0"\n');
  expect(() => chartWithVersion("version: 0.1.0\n", "0.2.0")).toThrow("has no version and appVersion");
});
