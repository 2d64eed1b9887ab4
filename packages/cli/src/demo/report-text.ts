import { styleText } from "node:util";
import { columns } from "../columns.ts";
import type { DemoReport, ReportSection } from "./report.ts";

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
  const texts = columns(lines.map(({ cells }) => cells));
  const rows = lines.flatMap(({ note }, index) => [
    `  ${texts[index] ?? ""}`,
    ...(note === undefined ? [] : [paint("dim", `      ${note}`)]),
  ]);
  return [paint("bold", title), ...rows].join("\n");
}
