import type { BackendModule } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { BREAKAGES } from "../breakages/breakages.ts";
import { checkBackend } from "../checks/check.ts";
import type { FakeHost } from "../runner/fake-host.ts";
import type { Breakage } from "../breakages/breakages.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import { SCENARIOS } from "../scenarios/index.ts";
import { describeBackend } from "./describe-backend.ts";
import type { DescribeOptions } from "./describe-backend.ts";

type Run = () => Promise<void>;

/** A few scenarios are enough to tell whether what is found arrives. */
const FEW = SCENARIOS.filter(({ rules }) => rules.includes("R-46")).slice(0, 2);

/** The tests of a backend by name, none of which has run. */
function testsOf(module: BackendModule, options: Omit<DescribeOptions, "it"> = {}): ReadonlyMap<string, Run> {
  const tests = new Map<string, Run>();
  describeBackend(module, createReferenceHost, { scenarios: FEW, ...options, it: (name, run) => tests.set(name, run) });
  return tests;
}

function runTest(tests: ReadonlyMap<string, Run>, beginning: string): Promise<void> {
  const [, found] = [...tests].find(([name]) => name.startsWith(beginning)) ?? [];
  if (found === undefined) throw new Error(`no test begins with ${beginning}`);
  return found();
}

const CAUGHT = "is caught when it ";
const LOSES_AFFINITY = "loses affinity";
const forgetful =
  BREAKAGES.find(({ name }) => name === LOSES_AFFINITY)?.apply(referenceBackend, createReferenceHost).module ?? referenceBackend;
const without: BackendModule = {
  ...referenceBackend,
  capabilities: { ...referenceBackend.capabilities, sessionAffinity: "reference forgets" },
};

describe("describeBackend", () => {
  it("has a test for the scenarios, one for random changes, and one for each defect but those that can't be seen", () => {
    const [first, ...others] = BREAKAGES.map(({ name }) => name);
    const names = [...testsOf(referenceBackend, { skipsNothing: true, notSeen: { [first ?? ""]: "because" } }).keys()];
    expect(names.slice(0, 2)).toEqual([
      "does in every scenario what it should, skipping nothing",
      expect.stringContaining("R-58 ends where one sync from nothing ends"),
    ]);
    expect(names.slice(2)).toEqual(others.map((name) => `${CAUGHT}${name}`));
    expect([...testsOf(without).keys()]).not.toContain(`${CAUGHT}${LOSES_AFFINITY}`);
  });

  it("skips, and says why, what the host has no means to show", async () => {
    const createFakeHost = (): FakeHost => Object.defineProperty(createReferenceHost(), "written", { value: undefined });
    const [names, skipped]: [string[], string[]] = [[], []];
    const register = Object.assign((name: string) => names.push(name), { skip: (name: string) => skipped.push(name) });
    describeBackend(referenceBackend, createFakeHost, { scenarios: FEW, it: register });
    expect(skipped).toEqual([`${CAUGHT}writes again what is as it was (not asked: the host has no written())`]);
    expect(names).toHaveLength(BREAKAGES.length + 1);
    const report = await checkBackend(referenceBackend, createFakeHost, []);
    expect(report.notAsked).toEqual(["what a small change writes again: the host has no written()"]);
    const breakage = BREAKAGES.find(({ needs }) => needs === "written");
    const missed = breakage && (await checkBackend(breakage.apply(referenceBackend, createFakeHost).module, createFakeHost, []));
    expect(missed?.findings.filter(({ kind }) => kind === "contract")).toEqual([]);
  });

  it("takes no name that is no breakage's", () => {
    expect(() => testsOf(referenceBackend, { notSeen: { "is renamed": "because" } })).toThrow("no breakage has this name: is renamed");
  });

  it("passes where nothing is wrong", async () => {
    const tests = testsOf(referenceBackend, { steps: 20, skipsNothing: true });
    for (const beginning of ["does in every scenario", "R-58", `${CAUGHT}${LOSES_AFFINITY}`])
      await expect(runTest(tests, beginning)).resolves.toBeUndefined();
  });

  it("hands on the report on the scenarios, and fails with what that throws", async () => {
    const reported: string[] = [];
    const onReport: DescribeOptions["onReport"] = ({ backend, cells }) => {
      reported.push(backend);
      if (cells.length > 0) throw new Error("the page says otherwise");
    };
    await expect(runTest(testsOf(referenceBackend, { onReport }), "does in every scenario")).rejects.toThrow("the page says otherwise");
    expect(reported).toEqual([referenceBackend.name]);
  });

  it("fails with what was found", async () => {
    await expect(runTest(testsOf(forgetful), "does in every scenario")).rejects.toThrow(/^affinity IPv[46] in .*: expected .*, got /m);
  });

  it("fails where a rule is skipped that must not be", async () => {
    await expect(runTest(testsOf(without), "does in every scenario")).resolves.toBeUndefined();
    await expect(runTest(testsOf(without, { skipsNothing: true }), "does in every scenario")).rejects.toThrow("skipped: ");
  });

  it("fails where a defect is not noticed", async () => {
    const harmless: Breakage = {
      name: "does nothing",
      of: "R-46",
      kinds: ["affinity"],
      rules: ["R-46"],
      apply: (module, createFakeHost) => ({ module, createFakeHost }),
    };
    await expect(runTest(testsOf(referenceBackend, { breakages: [harmless] }), `${CAUGHT}does nothing`)).rejects.toThrow(
      "wanted a finding of kind affinity that shows the offence against R-46; nothing was found",
    );
  });
});
