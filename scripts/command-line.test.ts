import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it, test } from "vitest";
import { oneOf, wholeNumber } from "./command-line.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-command-line-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Run a program of the repository in an empty folder. */
const run = (main: string, ...args: readonly string[]): Promise<{ code: unknown; out: string; err: string }> =>
  new Promise((resolve) => {
    const file = fileURLToPath(new URL(`../${main}`, import.meta.url));
    execFile(
      process.execPath,
      ["--conditions=@turnout/source", "--disable-warning=ExperimentalWarning", file, ...args],
      { cwd: folder },
      (error, out, err) => resolve({ code: error?.code ?? 0, out, err }),
    );
  });

test.each<readonly [main: string, args: readonly string[], says: string]>([
  ["bench/main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run bench -- --help"],
  ["bench/main.ts", ["--runs", "0"], "--runs 0 is no number above 0; usage: "],
  ["bench/moving/main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run e2e:moving -- --help"],
  ["bench/moving/main.ts", ["--only", "nowhere"], "--only nowhere: no move has that in its name; usage: "],
  ["bench/moving/main.ts", ["--connections", "many"], "--connections many: a whole number of at least 1 is needed; usage: "],
  ["bench/differential/main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run e2e:differential -- --help"],
  ["bench/differential/main.ts", ["--pair", "ipvs"], "--pair ipvs: choose from nft, iptables, iptables-legacy, ebpf; usage: "],
  ["bench/differential/main.ts", [], "KUBE_PROXY is not set: name the path of a real kube-proxy; usage: "],
  ["bench/healing/main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run e2e:healing -- --help"],
  ["bench/healing/main.ts", ["--shape", "large"], '"large" is no size: say SERVICESxENDPOINTS'],
  ["bench/healing/chaos-main.ts", ["--wrong"], "Unknown option '--wrong'; usage: npm run e2e:chaos -- --help"],
  ["bench/healing/chaos-main.ts", ["--only", "ntf"], "--only ntf: choose from "],
  ["bench/healing/chaos-main.ts", ["--rounds"], "Option '--rounds <value>' argument missing; usage: "],
  [
    "e2e/attacks/main.ts",
    ["--only", "ipvs"],
    "--only ipvs: choose from nft, ebpf, userspace, iptables; usage: npm run e2e:attacks -- --help",
  ],
  ["e2e/cluster/main.ts", ["sideways"], "sideways: up, down, move, or no word; usage: npm run e2e:cluster -- --help"],
  ["e2e/faults/main.ts", ["ntf"], "backend ntf: choose from nft, iptables"],
  ["e2e/images/main.ts", ["bogus"], "variant bogus: choose from "],
  ["e2e/kind/main.ts", ["--procs", "many"], "--procs many: a whole number from 1 to 100 is needed; usage: npm run e2e:kind -- --help"],
  ["scripts/fuzz/main.ts", ["--target", "nothing"], "--target nothing: choose from "],
  ["scripts/images/main.ts", ["--registry="], '--registry "": a registry is needed'],
  ["scripts/images/main.ts", ["--tag", "latest:x"], '--tag "latest:x": at most 128 letters'],
  ["scripts/images/main.ts", ["--backend", "constructor"], "--backend constructor: choose from all, nft"],
  ["scripts/images/main.ts", ["--arch", "amd64,"], "--arch : choose from amd64, arm64"],
  [
    "scripts/manifests/main.ts",
    ["schema"],
    "Unexpected argument 'schema'. This command does not take positional arguments; usage: npm run manifests -- --help",
  ],
  ["scripts/pack-windows.ts", [], "say one folder; usage: npm run pack:windows -- --help"],
  ["scripts/release/main.ts", [], "say what to do: version, dry-run, pack, publish, promote; usage: npm run release -- --help"],
  ["scripts/release/main.ts", ["publish", "out", "__proto__"], "channel __proto__: choose from stable, next, nightly"],
  ["site/build/main.ts", ["one", "two"], "say one folder, or none; usage: npm run site -- --help"],
])("%s %j is refused in one line, and nothing is done", async (main, args, says) => {
  const { code, out, err } = await run(main, ...args);
  expect([code, out, err.split("\n").length]).toEqual([2, "", 2]);
  expect(err).toContain(says);
  expect(await readdir(folder)).toEqual([]);
});

test.each([
  ["bench/main.ts", "npm run bench"],
  ["e2e/images/main.ts", "npm run e2e:images"],
  ["scripts/release/main.ts", "npm run release -- version|pack|publish|promote|dry-run"],
  ["site/build/main.ts", "npm run site"],
])("%s --help says how it is used, and does nothing", async (main, says) => {
  const { code, out, err } = await run(main, "--help");
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain(says);
  expect(await readdir(folder)).toEqual([]);
});

test.each([
  [
    "scripts/release/main.ts",
    ["promote", "none", "next", "stable"],
    /^release: \S+\/none has no build\.json: pack a build into it first\n$/,
  ],
  ["scripts/pack-windows.ts", ["a-file"], /^pack:windows: EEXIST: file already exists, mkdir 'a-file'\n$/],
  ["site/build/main.ts", ["a-file"], /^site: EEXIST: file already exists, mkdir '\S+\/a-file'\n$/],
])("%s %j fails in one line", async (main, args, says) => {
  await writeFile(join(folder, "a-file"), "");
  const { code, out, err } = await run(main, ...args);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toMatch(says);
});

it("numbers and names are read within their bounds", () => {
  expect([wholeNumber("--n", "3", 1, 9), oneOf("--n", "a", ["a", "b"])]).toEqual([3, "a"]);
  expect(() => wholeNumber("--n", "10", 1, 9)).toThrow(new RangeError("--n 10: a whole number from 1 to 9 is needed"));
  expect(() => oneOf("--n", "c", ["a", "b"])).toThrow(new RangeError("--n c: choose from a, b"));
});
