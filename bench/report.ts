import { markdownTable } from "@turnout/house/written-part";
import type { CaseResult, Goal } from "./case.ts";
import type { Machine } from "./machine.ts";
import { memoryText } from "./number-text.ts";
import { summarize } from "./statistics.ts";

/** One bench that ran, and when and where. */
export interface Measured {
  /** Of the bench. */
  readonly name: string;
  /** ISO date of the beginning. */
  readonly date: string;
  /** The options that it was run with, as typed. */
  readonly options: readonly string[];
  readonly machine: Machine;
  /** Load average of a minute at the start of each part. */
  readonly loads: readonly number[];
  readonly result: CaseResult;
}

/** Everything one run of the harness found out. */
export interface BenchReport {
  readonly measured: readonly Measured[];
  /** Benches that did not run, and why. */
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
}

/** Write a report as Markdown. */
export function markdownOf({ measured, skipped }: BenchReport): string {
  return [
    ...measured.map((one) => `### ${one.result.title}\n\n${sectionOf(one)}`),
    ...skipped.map(({ name, why }) => `\`${name}\` did not run: ${why}`),
  ].join("\n\n");
}

/** Write what stands below a bench's heading: when and how it was measured, its targets and its table. */
export function sectionOf({ name, date, options, machine, loads, result }: Measured): string {
  const { kernel, nft, node, cpus, cpuModel, memoryBytes } = machine;
  const [day, time] = [date.slice(0, 10), date.slice(11, 16)];
  const command = ["npm run bench -- --only", name, ...options].join(" ");
  const where = `Linux ${kernel}, nft ${nft}, Node ${node}, ${cpus} CPUs (${cpuModel}), ${memoryText(memoryBytes)} memory`;
  const { about, columns, rows, targets } = result;
  return [
    `\`${command}\` on ${day} at ${time} UTC. ${where}. Load average at the start of each part, the bench's own share included: ${loadText(loads)}.`,
    about,
    ...(targets.length === 0 ? [] : [markdownTable(TARGET_COLUMNS, targets.map(targetRow))]),
    markdownTable(columns, rows),
  ].join("\n\n");
}

/** The columns of a table of targets. */
export const TARGET_COLUMNS: readonly string[] = ["target", "wanted", "measured", ""];

function loadText(loads: readonly number[]): string {
  if (loads.length === 0) return "not taken";
  const { min, median, max } = summarize(loads);
  return `${min.toFixed(1)}–${max.toFixed(1)}, median ${median.toFixed(1)}`;
}

function targetRow({ what, wanted, measured, isMet }: Goal): readonly string[] {
  return [what, wanted, measured, isMet ? "met" : "**missed**"];
}
