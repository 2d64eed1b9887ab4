import { expect, it } from "vitest";
import { ruleStatus } from "./rule-status.ts";

it("a rule is passed where it was asked about and nothing was found, whatever was skipped elsewhere", () => {
  const cells = [
    { rule: "R-02", probes: 0, findings: 0, skipped: "no drop: it can't" },
    { rule: "R-01", probes: 3, findings: 0 },
    { rule: "R-01", probes: 0, findings: 0, skipped: "no SCTP: it can't" },
    { rule: "R-03", probes: 2, findings: 0 },
    { rule: "R-03", probes: 2, findings: 1 },
    { rule: "R-04", probes: 0, findings: 0 },
  ];
  expect(ruleStatus([{ backend: "mine", cells }])).toEqual({
    mine: { "R-01": "passed", "R-02": "no drop: it can't", "R-03": "failed", "R-04": "no packet was sent" },
  });
  expect(Object.keys(ruleStatus([{ backend: "mine", cells }])["mine"]!)).toEqual(["R-01", "R-02", "R-03", "R-04"]);
});
