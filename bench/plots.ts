import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tablesOf } from "@turnout/house/written-part";
import type { PageTable } from "@turnout/house/written-part";
import { parse } from "yaml";
import { timeText } from "./number-text.ts";
import { barPlotSvg } from "./plot-svg.ts";
import type { Bar, BarGroup } from "./plot-svg.ts";
import { partOf, valueOf, valueText } from "./plot-tables.ts";

/** Which plot is made of which table of docs/benchmarks.md. */
interface PlotSpec {
  /** Of the file, without `.svg`. */
  readonly name: string;
  /** Below which heading the table is: the first there whose columns begin with those of `only` and `labels`. */
  readonly heading: string;
  readonly title: string;
  /** Only the lines with these texts, by column; absent: all. */
  readonly only?: Readonly<Record<string, string>>;
  /** Columns that name a line. */
  readonly labels: readonly string[];
  /** Of the last of these columns only these texts; absent: all. A plot is for a glance, and its table has the rest. */
  readonly names?: readonly string[];
  /** Columns with values. */
  readonly values: readonly string[];
  /** Of cells that hold several values, after commas: which is plotted, from 0; absent: the first. */
  readonly part?: number;
  readonly unit: "time" | "MB";
  /** Default false. */
  readonly isLogarithmic?: boolean;
  /** Bars have a colour by what their line's name begins with; absent: by their column. */
  readonly colours?: readonly string[];
}

/** What is plotted. */
const PLOTS = parse(readFileSync(new URL("plots.yaml", import.meta.url), "utf8"), { merge: true }) as readonly PlotSpec[];

/** Draw the plots of a page's tables, by the names of their files. Pure. @throws {Error} when a table lacks a column that is plotted. */
export function plotsOf(page: string): ReadonlyMap<string, string> {
  const tables = tablesOf(page);
  return new Map(
    PLOTS.flatMap((plot) => {
      const table = plottedOf(plot, tables);
      return table === undefined ? [] : [[`${plot.name}.svg`, drawn(plot, table)] as const];
    }),
  );
}

/** The table that is plotted, with the lines that are; undefined: there is none, or none of them. */
function plottedOf({ heading, only = {}, labels, names }: PlotSpec, tables: readonly PageTable[]): PageTable | undefined {
  const first = [...Object.keys(only), ...labels];
  const table = tables.find((one) => one.heading === heading && first.every((label, k) => one.columns[k] === label));
  const isPlotted = (row: readonly string[]): boolean =>
    Object.values(only).every((text, k) => row[k] === text) && (names?.includes(row[first.length - 1] ?? "") ?? true);
  const rows = table?.rows.filter(isPlotted) ?? [];
  return table === undefined || rows.length === 0 ? undefined : { ...table, rows };
}

/** Write the plots of a page's tables into a folder, and remove others that are there. */
export function writePlots(page: string, folder: string): void {
  const plots = plotsOf(page);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (name.endsWith(".svg") && !plots.has(name)) rmSync(join(folder, name));
  for (const [name, svg] of plots) writeFileSync(join(folder, name), svg);
}

function drawn(plot: PlotSpec, { columns, rows }: PageTable): string {
  const { title, only = {}, labels, values, part = 0, unit, isLogarithmic = false, heading, colours } = plot;
  const begin = Object.keys(only).length;
  const places = values.map((value) => {
    const place = columns.indexOf(value);
    if (place < 0) throw new Error(`the table below "${heading}" has no column "${value}", which bench/plots.yaml plots`);
    return place;
  });
  const groups = rows.map((row): BarGroup => {
    const label = row.slice(begin, begin + labels.length).join(", ");
    const colour = colours?.findIndex((one) => label.startsWith(one));
    const bars = places.flatMap((place, column): readonly Bar[] => {
      const cell = partOf(row[place] ?? "", part);
      return cell === "" ? [] : [{ series: colour ?? column, value: valueOf(cell), text: valueText(cell) }];
    });
    // What is said of a whole line stands in its second column.
    const said = bars.length > 0 ? bars : [{ series: 0, value: undefined, text: row[begin + labels.length] ?? "" }];
    return { label, bars: said };
  });
  const axis = `${unit === "time" ? "time" : "resident memory"}${isLogarithmic ? ", each line ten times the one before" : ""}`;
  return barPlotSvg({
    title,
    axis,
    series: colours ?? values,
    groups,
    isLogarithmic,
    tick: unit === "time" ? tickText : (value) => `${value} MB`,
  });
}

function tickText(ms: number): string {
  if (ms === 0) return "0";
  return ms < 1 ? `${Number((ms * 1000).toPrecision(3))} µs` : timeText(ms).replace(/\.0+(?= )/, "");
}
