import { describe, expect, it } from "vitest";
import { abilitiesOf } from "@turnout/core";
import type { BackendModule } from "@turnout/core";
import { rulesAsked } from "./cells.ts";
import { checkBackend } from "./check.ts";
import type { Cell, ConformanceReport } from "./finding.ts";
import { withBackend } from "../runner/changed-subject.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import { SCENARIOS } from "../scenarios/index.ts";

/** The reference backend, saying that it can't do something. */
const without = (...missing: readonly string[]): BackendModule => ({
  ...referenceBackend,
  capabilities: { ...referenceBackend.capabilities, ...Object.fromEntries(missing.map((name) => [name, "not here"])) },
});

async function cellsOf(module: BackendModule, rule: string): Promise<readonly Cell[]> {
  const scenarios = SCENARIOS.filter(({ rules }) => rules.includes(rule));
  return (await checkBackend(module, createReferenceHost, scenarios)).cells;
}

const probesOf = (cells: readonly Cell[], rule: string): readonly number[] =>
  cells.filter((cell) => cell.rule === rule).map(({ probes }) => probes);

describe("a rule about what a backend can't do", () => {
  it.each([
    ["sessionAffinity", ["R-08", "R-46"]],
    ["sourceRanges", ["R-07", "R-39", "R-40"]],
    ["hairpin", ["R-36"]],
  ])("without %s: %j are skipped cells, and R-56 is asked instead", async (capability, rules) => {
    for (const rule of rules) {
      const cells = (await cellsOf(without(capability), rule)).filter((cell) => cell.rule === rule);
      expect(cells.map(({ probes, skipped }) => [probes, skipped])).toEqual(
        Array.from({ length: 6 }, () => [0, `no ${capability}: not here`]),
      );
    }
    const [rule = ""] = rules;
    expect(probesOf(await cellsOf(without(capability), rule), "R-56").every((probes) => probes > 0)).toBe(true);
  });

  it("is asked of a backend that can", async () => {
    const cells = await cellsOf(referenceBackend, "R-46");
    expect(probesOf(cells, "R-46").every((probes) => probes > 0)).toBe(true);
    expect(cells.filter(({ skipped }) => skipped !== undefined)).toEqual([]);
  });

  it("does not fail closed: that is a finding of R-56", async () => {
    const { module, createFakeHost } = withBackend(() => ({ render: () => [] }))({
      module: without("hairpin"),
      createFakeHost: createReferenceHost,
    });
    const scenarios = SCENARIOS.filter(({ rules }) => rules.join() === "R-36");
    const report: ConformanceReport = await checkBackend(module, createFakeHost, scenarios);
    expect(report.findings.length).toBeGreaterThan(0);
    expect(report.findings.flatMap(({ rules }) => rules)).not.toContain("R-36");
    expect(report.cells.find(({ rule }) => rule === "R-56")?.findings).toBeGreaterThan(0);
  });

  it("counts once where several of a scenario's rules are left out", () => {
    expect(rulesAsked(["R-08", "R-22", "R-46"], abilitiesOf(without("sessionAffinity")))).toEqual(["R-56", "R-22"]);
    expect(rulesAsked(["R-08", "R-22"], abilitiesOf(referenceBackend))).toEqual(["R-08", "R-22"]);
  });
});
