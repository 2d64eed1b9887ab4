import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const run = (main: string, ...args: readonly string[]): Promise<{ code: unknown; out: string; err: string }> =>
  new Promise((resolve) => {
    const file = fileURLToPath(new URL(main, import.meta.url));
    execFile(
      process.execPath,
      ["--conditions=@turnout/source", "--disable-warning=ExperimentalWarning", file, ...args],
      (error, out, err) => resolve({ code: error?.code ?? 0, out, err }),
    );
  });

test.each<readonly [main: string, args: readonly string[], says: string]>([
  ["main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run bench -- --help"],
  ["main.ts", ["--runs", "0"], "--runs 0 is no number above 0; usage: "],
  ["moving/main.ts", ["--wrong"], "Unknown option '--wrong'; usage: [KUBE_PROXY=PATH] npm run e2e:moving -- "],
  ["moving/main.ts", ["--only", "nowhere"], "--only nowhere: no move has that in its name; usage: "],
  ["moving/main.ts", ["--connections", "many"], "--connections many: a whole number of at least 1 is needed; usage: "],
  ["healing/main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run e2e:healing -- "],
  ["healing/main.ts", ["--shape", "large"], '"large" is no size: say SERVICESxENDPOINTS'],
  ["healing/chaos-main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run e2e:chaos -- "],
  ["healing/chaos-main.ts", ["--only", "ntf"], "--only ntf: choose from "],
  ["healing/chaos-main.ts", ["--rounds"], "Option '--rounds <value>' argument missing; usage: "],
])("%s %j is refused in one line, and nothing is done", async (main, args, says) => {
  const { code, out, err } = await run(main, ...args);
  expect([code, out, err.split("\n").length]).toEqual([2, "", 2]);
  expect(err).toContain(says);
});
