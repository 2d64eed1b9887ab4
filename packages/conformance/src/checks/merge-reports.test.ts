import { expect, it } from "vitest";
import { abilitiesOf } from "@turnout/core";
import { referenceBackend } from "../reference/reference-backend.ts";
import type { Cell, Finding } from "./finding.ts";
import { mergeReports } from "./merge-reports.ts";

const cell = (rule: string, probes: number, skipped?: string): Cell => ({
  rule,
  family: "IPv4",
  protocol: "TCP",
  probes,
  findings: 0,
  ...(skipped === undefined ? {} : { skipped }),
});

it("cells of parts are one each: skipped where all were, with the findings of all parts", () => {
  const finding = { rules: ["R-01"], family: "IPv4", protocol: "TCP" } as unknown as Finding;
  const first = { backend: "some", abilities: abilitiesOf(referenceBackend), findings: [], cells: [], notAsked: ["one"] };
  const { cells, findings, notAsked, backend } = mergeReports(first, [
    { findings: [], cells: [cell("R-01", 3), cell("R-02", 0, "no SCTP"), cell("R-03", 0, "no SCTP")], notAsked: ["one"] },
    { findings: [finding], cells: [cell("R-01", 4), cell("R-02", 2), cell("R-03", 0, "no SCTP")], notAsked: ["other"] },
  ]);
  expect([backend, findings, notAsked]).toEqual(["some", [finding], ["one", "other"]]);
  expect(cells).toEqual([{ ...cell("R-01", 7), findings: 1 }, cell("R-02", 2), cell("R-03", 0, "no SCTP")]);
});
