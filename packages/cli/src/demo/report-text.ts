import { styleText } from "node:util";
import type { DemoReport, ReportLine, ReportSection } from "./report.ts";

/** Colours a piece of text, or leaves it as it is. */
export type Paint = (style: "bold" | "dim" | "green" | "red", text: string) => string;

/** Make the painter for an output. */
export function painter(hasColors: boolean): Paint {
  return (style, text) => (hasColors ? styleText(style, text, { validateStream: false }) : text);
}

/**
 * Decide about colours: on a terminal, unless NO_COLOR says no; FORCE_COLOR says yes anywhere. Pure.
 * @source no-color.org
 */
export function wantsColors(isTerminal: boolean, variables: Readonly<Record<string, string | undefined>>): boolean {
  if ((variables["NO_COLOR"] ?? "") !== "") return false;
  const forced = variables["FORCE_COLOR"];
  return forced === undefined ? isTerminal : forced !== "0";
}

/** Write the report for people. Pure. */
export function reportText({ sections, failures, summary }: DemoReport, paint: Paint): string {
  const parts = sections.map((section) => sectionText(section, paint));
  if (failures.length > 0) {
    const lines = failures.map((failure) => `  ${paint("red", "✗")} ${failure}`);
    parts.push([paint("bold", "What went wrong"), ...lines].join("\n"));
  }
  const mark = failures.length === 0 ? paint("green", "✓") : paint("red", "✗");
  return `\n${[...parts, `${mark} ${paint("bold", summary)}`].join("\n\n")}\n`;
}

function sectionText({ title, lines }: ReportSection, paint: Paint): string {
  const widths = columnWidths(lines);
  const rows = lines.flatMap(({ cells, note }) => {
    const text = cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join("  ");
    return [`  ${text}`.trimEnd(), ...(note === undefined ? [] : [paint("dim", `      ${note}`)])];
  });
  return [paint("bold", title), ...rows].join("\n");
}

/** Widths of the columns; a line of one cell is a sentence and lines up with nothing. */
function columnWidths(lines: readonly ReportLine[]): readonly number[] {
  const tabular = lines.filter(({ cells }) => cells.length > 1);
  const count = Math.max(0, ...tabular.map(({ cells }) => cells.length));
  return Array.from({ length: count }, (_, column) => Math.max(...tabular.map(({ cells }) => cells[column]?.length ?? 0)));
}
