import type { Bounded, FamilyStatus, ProxyStatus, RefusalStatus } from "@turnout/client/daemon";
import type { Issue } from "@turnout/core";
import { ageText, sinceText, timeText } from "./ages.ts";

/** How many of what may be many are shown: the whole is to fit on a screen. */
const SHOWN_MAX = 5;

/** Show a proxy's status on one screen. Pure. */
export function statusText(status: ProxyStatus): string {
  const { families, issues, nowMs } = status;
  const lines = [
    ...headLines(status),
    "",
    ...table(families, nowMs),
    "",
    ...waitingLines(families, nowMs),
    ...refusedLines(families, nowMs),
    ...foreignLines(families, nowMs),
    ...issueLines(issues),
  ];
  return `${lines.map((line) => harmless(line).trimEnd()).join("\n")}\n`;
}

/** The same in a line, without what changes as time goes by. Pure. */
export function statusLine(status: ProxyStatus): string {
  const families = status.families.map(({ family, services, rows, objects, waiting, refused, inForceSinceMs, foreignChange }) => {
    const state = inForceSinceMs === undefined ? "not in force yet" : `${objects} objects in force`;
    const foreign = foreignChange === undefined ? [] : [`changed by ${foreignChange.who} at ${timeText(foreignChange.atMs, status.nowMs)}`];
    const waits = waiting === undefined ? [] : [`waiting since ${timeText(waiting.sinceMs, status.nowMs)}`];
    return [`${family}: ${services} Services, ${rows} ports`, state, ...waits, `${refused.count} refused`, ...foreign].join(", ");
  });
  return [healthWord(status), ...families, `${status.issues.count} reported`].join("; ");
}

/** What tools said may hold what a terminal obeys. */
function harmless(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, " ");
}

function healthWord({ health }: ProxyStatus): string {
  if (!health.isHealthy) return "NOT HEALTHY";
  return health.isEligible ? "healthy" : "healthy, not for load balancers";
}

function headLines(status: ProxyStatus): readonly string[] {
  const { version, backend, node, source, health, startedMs, nowMs, versions, sourceTroubles } = status;
  const parts = Object.entries(versions).map(([name, value]) => `${name} ${value}`);
  return [
    `node ${node}: ${healthWord(status)}${health.reason === "" ? "" : `: ${health.reason}`}`,
    `turnout ${version}, backend ${backend}${source === undefined ? "" : `, source ${source}`}, running since ${sinceText(startedMs, nowMs)}`,
    ...(parts.length === 0 ? [] : [parts.join(", ")]),
    ...Object.entries(sourceTroubles).map(([part, trouble]) => `the source is not followed: ${part}: ${trouble}; rules stay as they are`),
  ];
}

const HEADINGS = ["", "Services", "ports", "without endpoints", "endpoints", "objects", "in force since", "last sync", "changes take"];

function table(families: readonly FamilyStatus[], nowMs: number): readonly string[] {
  const rows = families.map((family) => cells(family, nowMs));
  const widths = HEADINGS.map((heading, column) => Math.max(...[HEADINGS, ...rows].map((row) => (row[column] ?? heading).length)));
  // What are numbers stands to the right.
  const show = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column > 0 && column < 6 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join("  ");
  return [HEADINGS, ...rows].map(show);
}

function cells(status: FamilyStatus, nowMs: number): readonly string[] {
  const { family, services, rows, rowsWithoutEndpoints, endpoints, objects, inForceSinceMs, lastSyncMs, latency } = status;
  const counts = [services, rows, rowsWithoutEndpoints, endpoints, objects].map((count) => count.toLocaleString("en"));
  const since = inForceSinceMs === undefined ? "not yet" : timeText(inForceSinceMs, nowMs);
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
  const lines = families.flatMap(({ family, waiting, inForceSinceMs }) => {
    if (waiting === undefined) return inForceSinceMs === undefined ? [`  ${family}: for its first state; see the log and the source`] : [];
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

function foreignLines(families: readonly FamilyStatus[], nowMs: number): readonly string[] {
  const lines = families.flatMap(({ family, foreignChange }) =>
    foreignChange === undefined
      ? []
      : [`  ${family}: ${sinceText(foreignChange.atMs, nowMs)}: ${foreignChange.who}: ${foreignChange.objects} objects, repaired since`],
  );
  return section("Changed by others", lines);
}

function issueLines({ count, first }: Bounded<Issue>): readonly string[] {
  const lines = first.slice(0, SHOWN_MAX).flatMap(({ object, what, hint }) => [`  ${object}: ${what}`, `    → ${hint}`]);
  return section("Reported about API objects", lines, moreLine(count, Math.min(first.length, SHOWN_MAX)));
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
