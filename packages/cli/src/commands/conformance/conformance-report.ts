import { abilitiesOf } from "@turnout/core";
import type { Abilities, BackendModule, IPFamily, Protocol } from "@turnout/core";
import type { Cell, ConformanceReport, Finding } from "@turnout/conformance";

/** How the rules fare: a rule is passed when it was asked about somewhere and nothing was found. */
export interface RuleCounts {
  readonly passed: number;
  readonly failed: number;
  /** Rules a backend is never asked about, because it lacks what they need. */
  readonly leftOut: number;
}

/** Random changes that were made besides the scenarios; the same seed makes the same again. */
export interface Histories {
  readonly steps: number;
  readonly seed: number;
}

/** What the command says of one backend, as `-o json` prints it. */
export interface BackendReport {
  readonly backend: string;
  readonly conforms: boolean;
  /** Why it could not be examined on this machine; absent: it was. */
  readonly leftOut?: string;
  readonly capabilities: Abilities["capabilities"];
  readonly variants: Abilities["variants"];
  readonly rules: RuleCounts;
  /** What was played besides the scenarios; absent when nothing was. */
  readonly histories?: Histories;
  readonly cells: readonly Cell[];
  /** What wasn't looked at besides the rules that cells say are skipped, each with the reason. */
  readonly notAsked: readonly string[];
  readonly findings: readonly Finding[];
}

/** Findings shown where not all are asked for; those that differ only in who asked, family and protocol are one. */
const FINDINGS_SHOWN = 10;
const CELL_WIDTH = 8;
const COLUMNS: readonly (readonly [IPFamily, Protocol])[] = (["IPv4", "IPv6"] as const).flatMap((family) =>
  (["TCP", "UDP", "SCTP"] as const).map((protocol) => [family, protocol] as const),
);

/** Put together what the kit found out about a backend. */
export function backendReport({ backend, abilities, cells, notAsked, findings }: ConformanceReport, histories?: Histories): BackendReport {
  const rules = countRules(cells);
  return { backend, conforms: findings.length === 0, ...abilities, rules, ...(histories && { histories }), cells, notAsked, findings };
}

/** Say of a backend why it was left out, and what its module says of itself. */
export function leftOutReport(module: BackendModule, leftOut: string): BackendReport {
  return {
    ...backendReport({ backend: module.name, abilities: abilitiesOf(module), cells: [], notAsked: [], findings: [] }),
    conforms: false,
    leftOut,
  };
}

/** Count rules by how they fare in all families and protocols together. */
export function countRules(cells: readonly Cell[]): RuleCounts {
  const rules = [...Map.groupBy(cells, ({ rule }) => rule).values()];
  const failed = rules.filter((one) => one.some(({ findings }) => findings > 0)).length;
  const leftOut = rules.filter(isLeftOut).length;
  return { passed: rules.length - failed - leftOut, failed, leftOut };
}

/** Whether nothing was asked of one rule anywhere. */
function isLeftOut(cells: readonly Cell[]): boolean {
  return cells.every(({ probes, findings }) => probes + findings === 0);
}

/** Write a report for people: what the backend says of itself, the matrix, the findings, the outcome. */
export function reportText(report: BackendReport, isVerbose: boolean): string {
  const { backend, capabilities, variants, histories, cells, notAsked, findings } = report;
  const missing = Object.entries(capabilities).flatMap(([name, can]) => (can === true ? [] : [`${name}: ${can}`]));
  const chosen = Object.entries(variants).map(([name, choice]) => `${name} ${choice}`);
  const groups = isVerbose ? findings.map((finding) => [finding]) : [...Map.groupBy(findings, likeness).values()];
  const shown = groups.slice(0, isVerbose ? groups.length : FINDINGS_SHOWN);
  const hidden = groups.slice(shown.length).flat().length;
  if (report.leftOut !== undefined) return `backend ${backend}\n\n${outcome(report)}\n`;
  return [
    `backend ${backend}`,
    ...list("can't do", missing.length === 0 ? ["nothing is missing"] : missing),
    ...list("chooses", chosen),
    ...list("histories", histories === undefined ? [] : [`${histories.steps} steps, seed ${histories.seed}`]),
    "",
    ...matrix(cells),
    "",
    ...reasons(cells, notAsked),
    ...shown.flatMap((group, index) => ["", ...findingLines(group, index + 1)]),
    ...(hidden > 0 ? ["", `and ${hidden} more: -v shows all`] : []),
    "",
    outcome(report),
    "",
  ].join("\n");
}

/** Texts one below the other, the first after their title. */
function list(title: string, texts: readonly string[]): readonly string[] {
  return texts.map((text, index) => `  ${(index === 0 ? title : "").padEnd(9)} ${text}`);
}

/** Say in one line how it ended. */
export function outcome({ backend, conforms, leftOut, rules, findings }: BackendReport): string {
  if (leftOut !== undefined) return `${backend} was left out: ${leftOut}`;
  const asked = rules.passed + rules.failed;
  const aside = rules.leftOut === 0 ? "" : `, ${rules.leftOut} left out`;
  const count = `${findings.length} finding${findings.length === 1 ? "" : "s"}`;
  return `${backend} ${conforms ? "conforms" : `does not conform, ${count}`}: ${rules.passed} of ${asked} rules passed${aside}`;
}

/** Rules by family and protocol: probes made, findings after `!`, `-` where nothing was asked. */
function matrix(cells: readonly Cell[]): readonly string[] {
  const line = (first: string, texts: readonly string[]): string =>
    [first.padEnd(CELL_WIDTH), ...texts.map((text) => text.padStart(CELL_WIDTH))].join("").trimEnd();
  const rules = [...Map.groupBy(cells, ({ rule }) => rule)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    line(
      "",
      COLUMNS.map(([family, protocol]) => (protocol === "TCP" ? family : "")),
    ),
    line(
      "rule",
      COLUMNS.map(([, protocol]) => protocol),
    ),
    ...rules.map(([rule, own]) =>
      line(
        rule,
        COLUMNS.map(([family, protocol]) => cellText(own.find((cell) => cell.family === family && cell.protocol === protocol))),
      ),
    ),
  ];
}

function cellText(cell: Cell | undefined): string {
  if (cell === undefined || cell.probes + cell.findings === 0) return "-";
  return cell.findings === 0 ? String(cell.probes) : `${cell.probes}!${cell.findings}`;
}

/** Explain the matrix: its signs, and by reason which rules are left out altogether and what wasn't asked of the others. */
function reasons(cells: readonly Cell[], notAsked: readonly string[]): readonly string[] {
  const [leftOut, others] = [new Map<string, Set<string>>(), new Set(notAsked)];
  for (const [rule, own] of Map.groupBy(cells, (cell) => cell.rule))
    for (const { skipped } of own) {
      if (skipped === undefined) continue;
      if (isLeftOut(own)) leftOut.set(skipped, (leftOut.get(skipped) ?? new Set()).add(rule));
      else others.add(skipped);
    }
  return [
    "A number says how many packets were judged, one after ! how many findings there are, - that nothing was asked.",
    ...[...others].map((reason) => `Not asked: ${reason}`),
    ...[...leftOut].map(([reason, rules]) => `Left out: ${[...rules].join(", ")}, since there is ${reason}`),
    ...(leftOut.size > 0 ? ["What is played of a rule left out is judged by R-56: what can't be done fails closed."] : []),
  ];
}

function likeness({ kind, scenario, step, expected, got }: Finding): string {
  return [kind, scenario, step, expected, got].join("\n");
}

function findingLines([finding, ...others]: readonly Finding[], number: number): readonly string[] {
  if (finding === undefined) return [];
  const { kind, rules, family, protocol, scenario, step, what, expected, got, details } = finding;
  const pad = " ".repeat(String(number).length);
  const lines = [
    ["scenario", scenario],
    ["step", step],
    ["tried", what],
    ["expected", expected],
    ["got", got],
    ...details.map((detail, index) => [index === 0 ? "because" : "", detail]),
    ...(others.length === 0 ? [] : [["and", `${others.length} more like it: -v shows them`]]),
  ];
  return [
    `${number} ${[kind, rules.join(" "), family, protocol ?? ""].filter((part) => part !== "").join("  ")}`,
    ...lines.map(([name = "", text = ""]) => `${pad} ${name.padEnd(9)} ${text}`),
  ];
}
