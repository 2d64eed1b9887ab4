import type { Finding, PrintedSurvey, Writer } from "@turnout/explain";
import type { FoundRules } from "../../found-backend.ts";
import type { BackendHealth } from "../../probe-backend.ts";

/** What `turnout doctor` found; `-o json` prints just this. */
export interface Diagnosis {
  readonly version: string;
  readonly host: string;
  /** The most serious first. */
  readonly findings: readonly Finding[];
  readonly backends: readonly BackendHealth[];
  /** Rules of service proxies. */
  readonly proxies: readonly FoundRules[];
  /** The backend of the proxy that answers here; absent: none does. */
  readonly serving?: string;
  /** Absent where this isn't Linux. */
  readonly survey?: PrintedSurvey;
}

/** Findings that a screen has room for. */
const FINDINGS_MAX = 7;
/** Other writers that are named. */
const WRITERS_MAX = 8;
/** Longer texts are cut: all of it is in the JSON. */
const WIDTH_MAX = 240;

/** Write a diagnosis for people: one screen, the most serious first. Pure. */
export function diagnosisText({ version, host, findings, backends, proxies, serving, survey }: Diagnosis): string {
  const faults = findings.filter(({ severity }) => severity === "fault").length;
  const shown = findings.slice(0, Math.max(FINDINGS_MAX, faults));
  const more = findings.length - shown.length;
  const about = survey === undefined ? "" : `, Linux ${survey.kernel}${survey.isRoot ? "" : ", without root"}`;
  const writers = (survey?.writers ?? []).map((writer) => `${writer.name} (${stateText(writer)}${writer.traces[0] ?? ""})`);
  return [
    `turnout ${version} on ${host}${about}`,
    "",
    ...shown.flatMap(({ severity, what, because, fix }) => [
      line(severity === "fault" ? "FAULT" : severity, what),
      line("", `seen: ${because}`),
      line("", `mend: ${fix}`),
    ]),
    ...(more > 0 ? [line("", `and ${more} more: turnout doctor -o json`)] : []),
    ...(findings.every(({ severity }) => severity === "note") ? [allClear(survey)] : []),
    "",
    ...labelled("backends", backendLines(backends, proxies, serving)),
    ...labelled(
      "rules by",
      writers.length === 0
        ? [seesRules(survey) ? "nobody else was found" : "nobody was found, but rules were not seen"]
        : cut(writers, WRITERS_MAX),
    ),
    ...labelled(
      "not seen",
      (survey?.unseen ?? []).map(({ what, because }) => `${what}: ${because}`),
    ),
    "",
  ].join("\n");
}

/** A process that was stopped does not run, though it is there. */
function stateText({ isRunning, stopped }: Writer): string {
  if (stopped.length > 0) return "stopped; ";
  return isRunning ? "running; " : "";
}

/** Rules that were not seen may be all that is wrong. */
function seesRules(survey: PrintedSurvey | undefined): boolean {
  return survey?.unseen.every(({ what }) => !what.startsWith("rules ")) ?? true;
}

function allClear(survey: PrintedSurvey | undefined): string {
  if (seesRules(survey)) return "Nothing is wrong with this host.";
  return survey?.isRoot === false
    ? "Nothing was found, but without root rules can't be seen."
    : 'Nothing was found, but rules could not be seen (see "not seen").';
}

/** What a line about one backend has room for, beside its label and name. */
const BACKEND_MAX = 110;

/** What a backend has to do with a host, in the order in which they are told. */
const USES = ["in use", "has rules in force", "can run"] as const;
type Use = (typeof USES)[number];

/** A line for each backend: the one that serves first, or that was asked for, then those that can run. */
function backendLines(backends: readonly BackendHealth[], proxies: readonly FoundRules[], serving: string | undefined): readonly string[] {
  const useOf = ({ backend }: BackendHealth): Use => {
    const hasRules = proxies.some((one) => one.backend === backend && one.by === "turnout" && one.isLive !== false);
    if (backend === serving || (hasRules && serving === undefined)) return "in use";
    return hasRules ? "has rules in force" : "can run";
  };
  const rank = (one: BackendHealth): number => {
    const use = useOf(one);
    return use === "can run" && one.problems.length > 0 ? USES.length : USES.indexOf(use);
  };
  return backends.toSorted((a, b) => rank(a) - rank(b)).map((one) => backendText(one, useOf(one)));
}

function backendText({ backend, problems, versions }: BackendHealth, use: Use): string {
  const { kernel: _, ...tools } = versions;
  const found = Object.entries(tools).map(([name, text]) => `${name} ${text}`);
  const [first = "", ...others] = problems;
  // What fails comes first in a message, then what to do; -o json has all of it.
  const problem = first.replace(/^\[\w+\] /, "");
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  const said =
    problems.length > 0
      ? `can't run: ${cutAt(problem, BACKEND_MAX - more.length)}${more}`
      : `${use}${found.length === 0 ? "" : `: ${found.join(", ")}`}`;
  return `${backend.padEnd(11)} ${said}`;
}

/** Cut a text at a word. */
function cutAt(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = text.lastIndexOf(" ", max - 1);
  return `${text.slice(0, end > 0 ? end : max - 1).replace(/[,:;]$/, "")}…`;
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
