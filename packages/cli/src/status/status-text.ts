import type { Bounded, FamilyStatus, ProxyStatus, RefusalStatus } from "@turnout/client/daemon";
import type { CountName, Counts, Issue } from "@turnout/core";
import type { NodeStateStatus } from "../node-state-status.ts";
import { columns } from "../columns.ts";
import { ageText, sinceText, timeText } from "./ages.ts";

/** How many of what may be many are shown: the whole is to fit on a screen. */
const SHOWN_MAX = 5;

/** What may be asked for its status. */
export type Status = ProxyStatus | NodeStateStatus;

/** Show a status on one screen. Pure. */
export function statusText(status: Status): string {
  const lines = status.kind === "proxy" ? proxyLines(status) : serverLines(status);
  return `${lines.map((line) => harmless(line).trimEnd()).join("\n")}\n`;
}

function proxyLines(status: ProxyStatus): readonly string[] {
  const { families, issues, nowMs } = status;
  return [
    ...headLines(status),
    "",
    ...columns([HEADINGS, ...families.map((family) => cells(family, nowMs))], (column) => column > 0 && column < 6),
    "",
    ...waitingLines(families, nowMs),
    ...refusedLines(families, nowMs),
    ...externalLines(families, nowMs),
    ...otherProxyLines(families, nowMs),
    ...countedLines(families, nowMs),
    ...issueLines(issues),
  ];
}

function serverLines(status: NodeStateStatus): readonly string[] {
  const { version, source, startedMs, nowMs, objects, watchers, views, issues, sourceProblems } = status;
  const held =
    objects === undefined
      ? "a relay, which holds none"
      : Object.entries(objects)
          .map(([kind, count]) => `${kind} ${count.toLocaleString("en")}`)
          .join(", ");
  return [
    `node-state server: ${serverHealth(status)}`,
    `turnout ${version}, source ${source}, running since ${sinceText(startedMs, nowMs)}`,
    ...problemLines(sourceProblems),
    "",
    `API objects: ${held}`,
    `Backends: ${watchers.toLocaleString("en")} streams, for ${views.toLocaleString("en")} nodes and settings`,
    ...issueLines(issues),
  ];
}

function serverHealth({ isComplete, listenProblem }: NodeStateStatus): string {
  if (listenProblem !== undefined) return `NOT HEALTHY: new clients can't connect: ${listenProblem}`;
  return isComplete ? "healthy" : "waiting for the source to say what there is";
}

function problemLines(problems: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(problems).map(([part, problem]) => `the source is not followed: ${part}: ${problem}; rules stay as they are`);
}

/** The same in a line, without what changes as time goes by. Pure. */
export function statusLine(status: Status): string {
  if (status.kind !== "proxy") return `${serverHealth(status)}; ${status.watchers} streams; ${status.issues.count} reported`;
  const families = status.families.map((family) => `${family.family}: ${familyWords(family, status.nowMs).join(", ")}`);
  const empty = sourceWords({ ...status, sourceProblems: {} });
  return [healthWord(status), ...problemLines(status.sourceProblems), ...empty, ...families, `${status.issues.count} reported`].join("; ");
}

function familyWords(family: FamilyStatus, nowMs: number): readonly string[] {
  const { services, rows, objects, changeSets, waiting, refused, appliedSinceMs, externalChange, otherProxies = [] } = family;
  return [
    `${services} Services`,
    `${rows} ports`,
    appliedSinceMs === undefined ? "not in force yet" : `${countText(objects, "object")} in force`,
    // Most changes leave all numbers as they were.
    ...(changeSets === undefined ? [] : [`change set ${changeSets}`]),
    ...(waiting === undefined ? [] : [`waiting since ${timeText(waiting.sinceMs, nowMs)}`]),
    `${refused.count} refused`,
    ...(externalChange === undefined ? [] : [`changed by ${externalChange.who} at ${timeText(externalChange.atMs, nowMs)}`]),
    ...otherProxies.map(({ what }) => `another proxy has ${what}`),
  ];
}

/** `1 object`, `2 objects`. */
function countText(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** What tools said may hold what a terminal obeys. */
function harmless(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, " ");
}

function healthWord({ health }: ProxyStatus): string {
  if (!health.isHealthy) return "NOT HEALTHY";
  return health.isEligible ? "healthy" : "healthy, not for load balancers";
}

/** What is wrong although /healthz answers 200: what it reads, and what is not in force. */
function sourceWords({ families, health, notInForce, sourceProblems }: ProxyStatus): readonly string[] {
  const isReported = families.some(({ appliedSinceMs }) => appliedSinceMs !== undefined);
  const hasServices = families.some(({ services }) => services > 0);
  return [
    ...(Object.keys(sourceProblems).length === 0 ? [] : ["the source is not followed, so changes of Services don't come in"]),
    ...(hasServices || !isReported ? [] : ["no Service at all is known, so none is served"]),
    ...(health.unready === undefined ? [] : [`packets don't go by its rules (/readyz): ${health.unready}`]),
    ...(notInForce === undefined || notInForce.services === 0
      ? []
      : [`the host refuses ports of ${countText(notInForce.services, "Service")}`]),
  ];
}

/** What /healthz answers, and what it says nothing of. */
function firstLine(status: ProxyStatus): string {
  const words = sourceWords(status);
  const { reason } = status.health;
  const said = `${healthWord(status)}${reason === "" ? "" : `: ${reason}`}`;
  return `node ${status.node}: ${words.length === 0 ? said : `${said} (/healthz), BUT ${words.join("; and ")}`}`;
}

function headLines(status: ProxyStatus): readonly string[] {
  const { version, backend, source, startedMs, nowMs, versions, sourceProblems } = status;
  const parts = Object.entries(versions).map(([name, value]) => `${name} ${value}`);
  return [
    firstLine(status),
    `turnout ${version}, backend ${backend}${source === undefined ? "" : `, source ${source}`}, running since ${sinceText(startedMs, nowMs)}`,
    ...(parts.length === 0 ? [] : [parts.join(", ")]),
    ...problemLines(sourceProblems),
  ];
}

const HEADINGS = ["", "Services", "ports", "without endpoints", "endpoints", "objects", "in force since", "last sync", "changes take"];

function cells(status: FamilyStatus, nowMs: number): readonly string[] {
  const { family, services, rows, rowsWithoutEndpoints, endpoints, objects, appliedSinceMs, lastSyncMs, latency } = status;
  const counts = [services, rows, rowsWithoutEndpoints, endpoints, objects].map((count) => count.toLocaleString("en"));
  const since = appliedSinceMs === undefined ? "not yet" : timeText(appliedSinceMs, nowMs);
  const last = lastSyncMs === undefined ? "never" : `${ageText(nowMs - lastSyncMs)} ago`;
  return [family, ...counts, since, last, latencyText(latency)];
}

function latencyText(latency: FamilyStatus["latency"]): string {
  if (latency === undefined) return "none yet";
  const { samples, p50Ms, p99Ms } = latency;
  return `p50 ${msText(p50Ms)}, p99 ${msText(p99Ms)} (last ${samples.toLocaleString("en")})`;
}

function msText(ms: number): string {
  if (ms >= 10_000) return `${Math.round(ms / 1000)} s`;
  return ms >= 100 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}

function waitingLines(families: readonly FamilyStatus[], nowMs: number): readonly string[] {
  const lines = families.flatMap(({ family, waiting, appliedSinceMs }) => {
    if (waiting === undefined) return appliedSinceMs === undefined ? [`  ${family}: for its first state; see the log and the source`] : [];
    const { count, first } = waiting.rows;
    const what = count === 0 ? "a change" : named(first, count);
    return [
      `  ${family}: since ${sinceText(waiting.sinceMs, nowMs)}: ${what}`,
      ...(waiting.error === undefined ? [] : [`    → ${waiting.error}; it is tried again by itself`]),
    ];
  });
  return section("Waiting", lines);
}

function refusedLines(families: readonly FamilyStatus[], nowMs: number): readonly string[] {
  const all = families.flatMap(({ family, refused }) => refused.first.map((one) => ({ family, ...one })));
  const count = families.reduce((sum, { refused }) => sum + refused.count, 0);
  const lines = all.slice(0, SHOWN_MAX).flatMap(({ family, ...refusal }) => refusalLines(family, refusal, nowMs));
  return section("Refused by the host", lines, moreLine(count, Math.min(all.length, SHOWN_MAX)));
}

function refusalLines(family: string, { object, rows, error, sinceMs }: RefusalStatus, nowMs: number): readonly string[] {
  const whose = rows.length === 0 ? "nobody's any more" : named(rows, rows.length);
  const what = object === undefined ? `all of ${whose}, kept as it was` : `${object} of ${whose}`;
  return [`  ${family}: since ${sinceText(sinceMs, nowMs)}: ${what}`, `    → ${error.message}`];
}

function externalLines(families: readonly FamilyStatus[], nowMs: number): readonly string[] {
  const lines = families.flatMap(({ family, externalChange }) =>
    externalChange === undefined
      ? []
      : [
          `  ${family}: ${sinceText(externalChange.atMs, nowMs)}: ${externalChange.who}: ${countText(externalChange.objects, "object")}, repaired since`,
        ],
  );
  return section("Changed by others", lines);
}

/** Nothing where there is none: few look for that. */
function otherProxyLines(families: readonly FamilyStatus[], nowMs: number): readonly string[] {
  const lines = families.flatMap(({ family, otherProxies = [] }) => {
    const sinceMs = Math.min(...otherProxies.map((other) => other.sinceMs));
    return otherProxies.length === 0
      ? []
      : [`  ${family}: since ${sinceText(sinceMs, nowMs)}: ${otherProxies.map(({ what }) => what).join(", ")}`];
  });
  return lines.length === 0 ? [] : section("Another service proxy has rules in force; stop it, then restart this one", lines);
}

function issueLines({ count, first }: Bounded<Issue>): readonly string[] {
  const lines = first.slice(0, SHOWN_MAX).flatMap(({ object, what, hint }) => [`  ${object}: ${what}`, `    → ${hint}`]);
  return section("Reported about API objects", lines, moreLine(count, Math.min(first.length, SHOWN_MAX)));
}

/** The busiest first, of both families. */
function countedLines(families: readonly FamilyStatus[], nowMs: number): readonly string[] {
  const counting = families.filter(({ counted }) => counted !== undefined);
  if (counting.length === 0) return [];
  const all = counting.flatMap(({ family, counted }) => (counted?.first ?? []).map(({ row, counts }) => ({ family, row, counts })));
  const lines = all.slice(0, SHOWN_MAX).map(({ family, row, counts }) => `  ${family} ${row}: ${countsText(counts)}`);
  const readMs = counting.map(({ counted }) => counted?.readMs).find((ms) => ms !== undefined);
  return section(readMs === undefined ? "Counted (being read)" : `Counted until ${sinceText(readMs, nowMs)}, the busiest first`, lines);
}

const COUNT_WORDS: Readonly<Record<CountName, string>> = {
  connections: "connections",
  datagrams: "datagrams",
  bytesIn: "bytes in",
  bytesOut: "bytes out",
  rejects: "refused (no endpoints)",
  dropsWithoutLocal: "dropped (no local endpoints)",
  dropsOutsideRanges: "dropped (source ranges)",
};

/** The same of one. */
const ONE: Readonly<Record<string, string>> = {
  connections: "connection",
  datagrams: "datagram",
  "bytes in": "byte in",
  "bytes out": "byte out",
};

function countsText(counts: Counts): string {
  const words = Object.entries(COUNT_WORDS).map(([name, word]) => [counts[name as CountName] ?? 0, word] as const);
  return words
    .flatMap(([count, word]) => (count === 0 ? [] : [`${count.toLocaleString("en")} ${count === 1 ? (ONE[word] ?? word) : word}`]))
    .join(", ");
}

function section(title: string, lines: readonly string[], more: readonly string[] = []): readonly string[] {
  return lines.length === 0 ? [`${title}: nothing`] : [`${title}:`, ...lines, ...more];
}

function moreLine(count: number, shown: number): readonly string[] {
  return count > shown
    ? [`  and ${(count - shown).toLocaleString("en")} more; -o json shows the first twenty, the log each when it began`]
    : [];
}

function named(first: readonly string[], count: number): string {
  const shown = first.slice(0, 3);
  return count > shown.length ? `${shown.join(", ")} and ${(count - shown.length).toLocaleString("en")} more` : shown.join(", ");
}
