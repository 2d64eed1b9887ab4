import type { Finding, HostSurvey } from "@turnout/host/survey";
import type { FoundRules } from "../found-backend.ts";
import type { BackendHealth } from "../probe-backend.ts";

/** What `turnout doctor` found; `-o json` prints just this. */
export interface Diagnosis {
  readonly version: string;
  readonly host: string;
  /** The most serious first. */
  readonly findings: readonly Finding[];
  readonly backends: readonly BackendHealth[];
  /** Rules of service proxies. */
  readonly proxies: readonly FoundRules[];
  /** Absent where this isn't Linux. */
  readonly survey?: HostSurvey;
}

/** Findings that a screen has room for. */
const FINDINGS_MAX = 7;
/** Other writers that are named. */
const WRITERS_MAX = 8;
/** Longer texts are cut: all of it is in the JSON. */
const WIDTH_MAX = 240;

/** Write a diagnosis for people: one screen, the most serious first. Pure. */
export function diagnosisText({ version, host, findings, backends, survey }: Diagnosis): string {
  const faults = findings.filter(({ severity }) => severity === "fault").length;
  const shown = findings.slice(0, Math.max(FINDINGS_MAX, faults));
  const more = findings.length - shown.length;
  const about = survey === undefined ? "" : `, Linux ${survey.kernel}${survey.isRoot ? "" : ", without root"}`;
  const writers = (survey?.writers ?? []).map(
    ({ name, isRunning, traces }) => `${name} (${isRunning ? "running; " : ""}${traces[0] ?? ""})`,
  );
  return [
    `turnout ${version} on ${host}${about}`,
    "",
    ...shown.flatMap(({ severity, what, because, mend }) => [
      line(severity === "fault" ? "FAULT" : severity, what),
      line("", `seen: ${because}`),
      line("", `mend: ${mend}`),
    ]),
    ...(more > 0 ? [line("", `and ${more} more: turnout doctor -o json`)] : []),
    ...(findings.length === 0 ? ["Nothing is wrong with this host."] : []),
    "",
    ...labelled("backends", backends.map(backendText)),
    ...labelled("rules by", writers.length === 0 ? ["nobody else was found"] : cut(writers, WRITERS_MAX)),
    ...labelled(
      "not seen",
      (survey?.unseen ?? []).map(({ what, because }) => `${what}: ${because}`),
    ),
    "",
  ].join("\n");
}

function backendText({ backend, problems, versions }: BackendHealth): string {
  const { kernel: _, ...tools } = versions;
  const found = Object.entries(tools).map(([name, text]) => `${name} ${text}`);
  const name = backend.padEnd(10);
  if (problems.length > 0) return `${name} can't run: ${problems.join("; ")}`;
  return `${name} can run${found.length === 0 ? "" : `: ${found.join(", ")}`}`;
}

function line(label: string, text: string): string {
  return `${label.padEnd(6)} ${text.length > WIDTH_MAX ? `${text.slice(0, WIDTH_MAX - 1)}…` : text}`;
}

function labelled(label: string, texts: readonly string[]): readonly string[] {
  return texts.map(
    (text, index) => `${(index === 0 ? label : "").padEnd(9)} ${text.length > WIDTH_MAX ? `${text.slice(0, WIDTH_MAX - 1)}…` : text}`,
  );
}

function cut(texts: readonly string[], max: number): readonly string[] {
  return texts.length <= max ? texts : [...texts.slice(0, max), `and ${texts.length - max} more`];
}
