import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadTargets, readCorpus, REPOSITORY, saveFinding } from "./corpus.ts";
import { fuzz, NotLoadedError } from "./fuzz.ts";
import { mutate } from "./mutate.ts";
import { Random } from "./random.ts";

const CASES = 100;
const SEED = 20_260_101;

describe("what reads others' input", () => {
  it("returns or refuses it with a ProxyError, in time and within memory: every corpus, and some inputs made of it", async () => {
    const placed = await loadTargets(REPOSITORY);
    const targets = placed.map(({ target }) => target.name);
    const { ran, findings } = await fuzz({ repository: REPOSITORY, targets, seed: SEED, effort: { cases: CASES } });
    expect(findings.map(({ target, input, what }) => `${target} ${input.toString("hex")}\n${what}`)).toEqual([]);
    expect(targets.length).toBeGreaterThan(30);
    expect(targets.filter((name) => (ran.get(name)?.cases ?? 0) <= CASES)).toEqual([]);
  });

  it("has a corpus for each target, and no other", async () => {
    const placed = await loadTargets(REPOSITORY);
    expect(placed.filter((one) => readCorpus(one).length === 0)).toEqual([]);
    const parents = new Set(placed.map(({ folder }) => join(folder, "..")));
    const folders = [...parents].flatMap((parent) => readdirSync(parent).map((name) => join(parent, name)));
    expect(folders.toSorted()).toEqual(placed.map(({ folder }) => folder).toSorted());
  });
});

/** Targets that are wrong on purpose; `x` does it. */
const WRONG = `
const when = (input, act) => { if (input.toString().includes("x")) act(); };
export const FUZZ_TARGETS = [
  { name: "a-refuses", form: "text", run: (input) => when(input, () => { throw Object.assign(new Error("no"), { name: "ProxyError" }); }) },
  { name: "b-throws", form: "text", run: (input) => when(input, () => null.field) },
  { name: "c-hangs", form: "text", run: (input) => when(input, () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)) },
  { name: "d-grows", form: "text", run: (input) => when(input, () => { const all = []; for (;;) all.push(new Array(1_000_000).fill(1.5)); }) },
  { name: "e-rejects", form: "text", run: async (input) => { await 0; when(input, () => { throw "text"; }); } },
];`;

describe("the harness", () => {
  let repository: string;
  beforeAll(() => {
    repository = mkdtempSync(join(tmpdir(), "turnout-fuzz-"));
    mkdirSync(join(repository, "packages/x/src/test-support"), { recursive: true });
    writeFileSync(join(repository, "packages/x/src/test-support/fuzz-targets.ts"), WRONG);
    for (const name of ["a-refuses", "b-throws", "c-hangs", "d-grows", "e-rejects"]) {
      mkdirSync(join(repository, "packages/x/test/fuzz", name), { recursive: true });
      writeFileSync(join(repository, "packages/x/test/fuzz", name, "seed.input"), "x");
    }
  });
  afterAll(() => rmSync(repository, { recursive: true }));

  it("says in one line that no target was loaded in time", async () => {
    const never = "await new Promise((resolve) => setTimeout(resolve, 60_000));\nexport const FUZZ_TARGETS = [];";
    const slow = mkdtempSync(join(tmpdir(), "turnout-fuzz-"));
    try {
      mkdirSync(join(slow, "packages/x/src/test-support"), { recursive: true });
      writeFileSync(join(slow, "packages/x/src/test-support/fuzz-targets.ts"), never);
      const ran = fuzz({ repository: slow, targets: ["a"], seed: 1, effort: { cases: 0 }, loadMs: 0 });
      await expect(ran).rejects.toThrow(new NotLoadedError(0));
    } finally {
      rmSync(slow, { recursive: true });
    }
  });

  it("finds whatever is no refusal, also what never ends and what takes all memory, and goes on", async () => {
    const placed = await loadTargets(repository);
    const targets = placed.map(({ target }) => target.name);
    const { findings } = await fuzz({ repository, targets, seed: 1, effort: { cases: 0 }, hangMs: 10_000 });
    const found = new Map(findings.map(({ target, input, what }) => [target, `${input.toString()} ${what.split("\n")[0]}`]));
    expect(Object.fromEntries(found)).toEqual({
      "b-throws": "x TypeError: Cannot read properties of null (reading 'field')",
      "c-hangs": "x it takes longer than 10000 ms",
      "d-grows": expect.stringMatching(/^x it ended the thread: .*reaching memory limit/) as string,
      "e-rejects": "x it threw text",
    });
  });

  it("saves what it found where it is played from then on", async () => {
    const [first] = (await loadTargets(repository)).filter(({ target }) => target.name === "b-throws");
    const path = saveFinding(first!, { target: "b-throws", input: Buffer.from("found x"), what: "" });
    expect(readFileSync(path, "utf8")).toBe("found x");
    expect(readCorpus(first!).map(String)).toContain("found x");
  });

  it.each(["bytes", "text", "json"] as const)("makes the same inputs of the same seed, and many different ones: %s", (form) => {
    const corpus = [Buffer.from('{"a":[1,"two"],"b":{"c":null}}'), Buffer.from("[[],{}]")];
    const inputs = (seed: number): readonly string[] => {
      const random = new Random(seed);
      return Array.from({ length: 300 }, () => mutate(corpus, form, random).toString("hex"));
    };
    expect(inputs(1)).toEqual(inputs(1));
    expect(new Set([...inputs(1), ...inputs(2)]).size).toBeGreaterThan(300);
  });
});
