import type { CaseResult, Goal } from "./case.ts";
import type { Machine } from "./machine.ts";
import { memoryText } from "./number-text.ts";
import { plotLine } from "./plots.ts";
import { summarize } from "./statistics.ts";

/** Everything one run of the harness found out. */
export interface BenchReport {
  /** ISO date. */
  readonly date: string;
  readonly machine: Machine;
  /** Load average of a minute at the start of each part. */
  readonly loads: readonly number[];
  readonly results: readonly CaseResult[];
  /** Benches that did not run, and why. */
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
}

const BEGIN = "<!-- results: written by `npm run bench -- --publish`, don't edit -->";
const END = "<!-- end of results -->";

/** Write a report as Markdown. */
export function markdownOf({ date, machine, results, skipped, loads }: BenchReport): string {
  const { kernel, nft, node, cpus, cpuModel, memoryBytes, load } = machine;
  const targets = results.flatMap((result) => result.targets);
  return [
    `Measured ${date.slice(0, 10)} on Linux ${kernel}, nft ${nft}, Node ${node}, ${cpus} CPUs (${cpuModel}), ${memoryText(memoryBytes)} memory; load average before: ${load.toFixed(1)}, at the start of each part (the benches' own share included): ${loadText(loads)}.`,
    ...(targets.length === 0 ? [] : [tableText(["target", "wanted", "measured", ""], targets.map(targetRow))]),
    ...results.map(({ title, about, columns, rows }) =>
      [`### ${title}`, ...(plotLine(title) === undefined ? [] : [plotLine(title)]), about, tableText(columns, rows)].join("\n\n"),
    ),
    ...skipped.map(({ name, why }) => `\`${name}\` did not run: ${why}`),
  ].join("\n\n");
}

/** Put a report's Markdown into a page, in place of the results that are there. @throws {Error} when the page has no place for them. */
export function publish(page: string, markdown: string): string {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error(`the page lacks the lines "${BEGIN}" and "${END}"`);
  return `${page.slice(0, from)}${BEGIN}\n\n${markdown}\n\n${page.slice(to)}`;
}

function loadText(loads: readonly number[]): string {
  if (loads.length === 0) return "none ran";
  const { min, median, max } = summarize(loads);
  return `${min.toFixed(1)}–${max.toFixed(1)}, median ${median.toFixed(1)}`;
}

function targetRow({ what, wanted, measured, isMet }: Goal): readonly string[] {
  return [what, wanted, measured, isMet ? "met" : "**missed**"];
}

/** Write a Markdown table, padded so that it reads as text too. */
export function tableText(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map((column, k) => Math.max(3, column.length, ...rows.map((row) => row[k]?.length ?? 0)));
  const line = (cells: readonly string[]): string => `| ${widths.map((width, k) => (cells[k] ?? "").padEnd(width)).join(" | ")} |`;
  return [line(columns), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
