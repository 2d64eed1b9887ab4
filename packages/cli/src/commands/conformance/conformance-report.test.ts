import { abilitiesOf, type Abilities } from "@turnout/core";
import { referenceBackend, type Cell, type Finding } from "@turnout/conformance";
import { describe, expect, test } from "vitest";
import { backendReport, countRules, outcome, reportText } from "./conformance-report.ts";

const REFERENCE = abilitiesOf(referenceBackend);
const ABILITIES: Abilities = {
  ...REFERENCE,
  capabilities: { ...REFERENCE.capabilities, SCTP: "not in its kernel", sessionAffinity: "no memory" },
};

const cell = (rule: string, changes: Partial<Cell> = {}): Cell => ({
  rule,
  family: "IPv4",
  protocol: "TCP",
  probes: 12,
  findings: 0,
  ...changes,
});

const CELLS: readonly Cell[] = [
  cell("R-22"),
  cell("R-22", { protocol: "UDP", probes: 7 }),
  cell("R-22", { protocol: "SCTP", probes: 0, skipped: "no SCTP: not in its kernel" }),
  cell("R-30", { family: "IPv6", probes: 5, findings: 2 }),
  cell("R-41", { probes: 0, skipped: "no sessionAffinity: no memory" }),
];

const FINDING: Finding = {
  kind: "verdict",
  scenario: "the last endpoint goes",
  step: "it goes",
  rules: ["R-30"],
  family: "IPv6",
  protocol: "TCP",
  what: "client1 → web nodePort@node1",
  expected: "dropped",
  got: "refused",
  details: ["by R-30", "route TCP *:30001"],
};

test("a rule is passed when it was asked and nothing was found; where nothing was asked it counts apart", () => {
  expect(countRules(CELLS)).toEqual({ passed: 1, failed: 1, leftOut: 1 });
  expect(countRules([cell("R-01", { probes: 0, findings: 1 })])).toEqual({ passed: 0, failed: 1, leftOut: 0 });
});

describe("the text", () => {
  const notAsked = ["what a small change writes again: the host has no written()"];
  const report = backendReport({ abilities: ABILITIES, backend: "poor", findings: [FINDING, FINDING], cells: CELLS, notAsked });

  test("has what the backend says of itself, the matrix, the findings and the outcome", () => {
    expect(reportText(report, false)).toBe(
      [
        "backend poor",
        "  can't do  SCTP: not in its kernel",
        "            sessionAffinity: no memory",
        ...Object.entries(REFERENCE.variants).map(
          ([name, choice], index) => `  ${index === 0 ? "chooses  " : "         "} ${name} ${choice}`,
        ),
        "",
        "            IPv4                    IPv6",
        "rule         TCP     UDP    SCTP     TCP     UDP    SCTP",
        "R-22          12       7       -       -       -       -",
        "R-30           -       -       -     5!2       -       -",
        "R-41           -       -       -       -       -       -",
        "",
        "A number says how many packets were judged, one after ! how many findings there are, - that nothing was asked.",
        "Not asked: what a small change writes again: the host has no written()",
        "Not asked: no SCTP: not in its kernel",
        "Left out: R-41, since there is no sessionAffinity: no memory",
        "What is played of a rule left out is judged by R-56: what can't be done fails closed.",
        "",
        "1 verdict  R-30  IPv6  TCP",
        "  scenario  the last endpoint goes",
        "  step      it goes",
        "  tried     client1 → web nodePort@node1",
        "  expected  dropped",
        "  got       refused",
        "  because   by R-30",
        "            route TCP *:30001",
        "  and       1 more like it: -v shows them",
        "",
        "poor does not conform, 2 findings: 1 of 2 rules passed, 1 left out",
        "",
      ].join("\n"),
    );
  });

  test("shows ten kinds of findings, and each of them with -v", () => {
    const findings = Array.from({ length: 23 }, (_, index) => ({ ...FINDING, step: `step ${Math.floor(index / 2)}` }));
    const many = backendReport({ abilities: ABILITIES, backend: "poor", findings, cells: CELLS, notAsked: [] });
    expect(reportText(many, false)).toMatch(/^10 verdict.*\n {3}scenario/m);
    expect(reportText(many, false)).not.toMatch(/^11 verdict/m);
    expect(reportText(many, false)).toContain("\nand 3 more: -v shows all\n");
    expect(reportText(many, true)).toMatch(/^23 verdict/m);
    expect(reportText(many, true)).not.toContain("-v shows");
  });

  test("a backend without findings conforms", () => {
    const good = backendReport(
      { abilities: ABILITIES, backend: "good", findings: [], cells: [cell("R-22")], notAsked: [] },
      { steps: 100, seed: 7 },
    );
    expect(outcome(good)).toBe("good conforms: 1 of 1 rules passed");
    expect(reportText(good, false)).toContain("\n  histories 100 steps, seed 7\n");
  });
});
