import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import type { ViteUserConfig } from "vitest/config";
import { BaseSequencer } from "vitest/node";
import type { TestSpecification } from "vitest/node";
import { shareSeed } from "./scripts/some-of.ts";
import { KERNEL_KITS, recordedSeconds, REST, testsWithChildren } from "./scripts/test-plan.ts";

const conditions = ["@turnout/source"];
const root = fileURLToPath(new URL(".", import.meta.url));

/** "main" (`npm test`), "rest" (`npm run test:rest`), "full", or undefined: whatever the command line names. */
const tests = process.env["TURNOUT_TESTS"];
// Another share each day; tests and their children read it from here.
process.env["TURNOUT_SHARE"] ??= String(Math.floor(Date.now() / 86_400_000));
shareSeed();

/** It runs in a virtual machine with one CPU and takes minutes; it begins with the unit tests, so that nothing waits for it at the end. */
const IN_VM = "e2e/ipvs.test.ts";
const UNIT = [
  "packages/*/src/**/*.test.ts",
  "scripts/**/*.test.ts",
  "bench/**/*.test.ts",
  "examples/*.test.ts",
  "site/**/*.test.ts",
  IN_VM,
];
const E2E = ["e2e/**/*.test.ts"];

/** The files of a project that this run has, as a list of globs. */
function chosen(all: readonly string[]): string[] {
  if (tests !== "main" && tests !== "rest") return [...all];
  const filesOf = (globs: readonly string[]): ReadonlySet<string> => new Set(globSync([...globs], { cwd: root }));
  const [ofRest, kits] = [filesOf(REST), filesOf(KERNEL_KITS)];
  const isChosen = (file: string): boolean => kits.has(file) || ofRest.has(file) === (tests === "rest");
  return [...filesOf(all)].filter((file) => !/node_modules|\/dist\//.test(file) && isChosen(file));
}

/** Begins with what took longest, so that no file is left that runs alone at the end. Vitest itself keeps the projects apart. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = recordedSeconds();
    const of = ({ moduleId }: TestSpecification): number => seconds[relative(root, moduleId)] ?? 0;
    return (await super.sort(files)).sort((a, b) => of(b) - of(a));
  }
}

/** What `--changed` counts as changed: what git says, and every test that starts processes, since what those load is in no import of the test. */
const vcsProvider = {
  findChangedFiles({ changedSince }: { readonly changedSince?: string | boolean }): Promise<string[]> {
    const git = (...args: string[]): readonly string[] =>
      execFileSync("git", args, { cwd: root, encoding: "utf8" }).split("\n").filter(Boolean);
    const since = typeof changedSince === "string" ? changedSince : "HEAD";
    const changed = [...git("diff", "--name-only", since), ...git("ls-files", "--others", "--exclude-standard")];
    if (changed.length === 0) return Promise.resolve([]);
    return Promise.resolve([...changed, ...testsWithChildren(root, git("ls-files", "*.test.ts"))]);
  },
};

/**
 * Two projects for their order only: everything next to the sources first, then the packets of this kernel, never both at once, and
 * never more than three files at a time: the development machine has two cores, and tests on the kernel wait a third of their time.
 * `extends` hands the resolve conditions down.
 */
const config: ViteUserConfig = defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    reporters: ["default", "./scripts/closing-line-reporter.ts"],
    // Upper bounds for a machine that is busy with other things, too: what passes waits for events and never for these.
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    experimental: { vcsProvider },
    projects: [
      { extends: true, test: { name: "unit", include: chosen(UNIT), sequence: { groupOrder: 0 } } },
      { extends: true, test: { name: "e2e", include: chosen(E2E), exclude: [IN_VM], sequence: { groupOrder: 1 } } },
    ],
  },
});

export default config;
