import type { Goal } from "./case.ts";
import { memoryText, rateText, ratioText, runsText, timeText } from "./number-text.ts";
import { median, percentile } from "./statistics.ts";
import { parseShape, shapeText } from "./workload.ts";
import type { Shape } from "./workload.ts";

/** One line of a table: what was measured for it, by group; most have one, named "". */
export interface CaseRow {
  readonly shape: Shape | undefined;
  readonly variant: string;
  /** Texts that cells name besides `size` and `variant`. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly results: Readonly<Record<string, readonly unknown[]>>;
}

/**
 * A cell: a text in which `{size}`, `{variant}` and labels are named, and numbers as `{FORMAT [REDUCER] PATH}` or `{FORMAT [REDUCER] PATH / PATH}` (or `-`).
 * A path leads into results, `cold.totalMs`, of another group `A:loadMs`. Of several cells the first counts that has all its numbers; none: it is empty.
 */
export type Cell = string | readonly string[];

/** A target of a case. */
export interface GoalSpec {
  /** A cell. */
  readonly what: string;
  /** Sizes and variants that it is for; default all. */
  readonly at?: string | readonly string[];
  readonly variants?: readonly string[];
  /** `FORMAT [REDUCER] PATH`. */
  readonly value: string;
  /** The value is divided by that of this size; by this the limit is multiplied: the value of another variant. */
  readonly against?: string;
  readonly beside?: string;
  readonly under?: number;
  readonly atMost?: number;
  readonly atLeast?: number;
  /** What people read, with `{limit}`; default by the kind of limit. */
  readonly wanted?: string;
  /** A cell; default the value. */
  readonly measured?: string;
}

const times = (ms: number): string => `${ms < 0 ? "−" : ""}${timeText(Math.abs(ms))}`;
/** How a number is written in a cell. */
export type CellFormat =
  | "time"
  | "signed"
  | "micros"
  | "millionths"
  | "us"
  | "wholeUs"
  | "cpu"
  | "mbCpu"
  | "krate"
  | "gbps"
  | "memory"
  | "mb"
  | "kib"
  | "rate"
  | "ratio"
  | "number"
  | "plain"
  | "tenths"
  | "mbps"
  | "whole";

/** How numbers are written, by name. */
export const CELL_FORMATS: Readonly<Record<CellFormat, (value: number) => string>> = {
  time: times,
  signed: (ms) => `${ms < 0 ? "−" : "+"} ${timeText(Math.abs(ms))}`,
  micros: (ms) => (Math.abs(ms) < 1 ? `${Math.round(ms * 1000)} µs` : times(ms)),
  us: (us) => `${us.toFixed(1)} µs`,
  wholeUs: (us) => `${us.toFixed(0)} µs`,
  millionths: (ms) => String(Math.round(ms * 1000)),
  cpu: (us) => `${us >= 10 ? us.toFixed(1) : us.toFixed(2)} µs`,
  mbCpu: (us) => `${Math.round(us * 1e6)} µs`,
  krate: (rate) => `${(rate / 1000).toFixed(1)}k/s`,
  gbps: (rate) => `${(rate / 1e9).toFixed(2)} GB/s`,
  memory: memoryText,
  mb: (bytes) => `${(bytes / 1e6).toFixed(1)} MB`,
  kib: (kib) => `${Math.round(kib).toLocaleString("en-US")} KiB`,
  rate: rateText,
  ratio: ratioText,
  number: (value) => value.toLocaleString("en-US"),
  plain: String,
  tenths: (value) => value.toFixed(1),
  mbps: (value) => `${Math.round(value)} MB/s`,
  whole: (value) => String(Math.round(value)),
};
const REDUCERS: Readonly<Record<string, (values: readonly number[]) => number>> = {
  p50: (values) => percentile(values, 0.5),
  p99: (values) => percentile(values, 0.99),
  min: (values) => percentile(values, 0),
  max: (values) => percentile(values, 1),
  count: ({ length }) => length,
};

/** The cells of a row. Pure. */
export function cellsOf(columns: Readonly<Record<string, Cell>>, row: CaseRow): readonly string[] {
  return Object.values(columns).map(
    (cell) => [cell].flat().reduce<string | undefined>((text, one) => text ?? cellText(one, row), undefined) ?? "",
  );
}

/** A text with what it names; undefined: a number is missing. Pure. */
export function cellText(cell: string, row: CaseRow): string | undefined {
  let isWhole = true;
  const text = cell.replace(/\{(.+?)\}/g, (_, name: string) => {
    const found = name === "size" ? row.shape && shapeText(row.shape) : (labelOf(name, row) ?? numberText(name, row));
    if (found === undefined) isWhole = false;
    return found ?? "";
  });
  return isWhole ? text : undefined;
}

function labelOf(name: string, { variant, labels, results }: CaseRow): string | undefined {
  const [result] = results[""] ?? [];
  const found = labels?.[name] ?? (name === "variant" ? variant : (result as Readonly<Record<string, unknown>> | undefined)?.[name]);
  return typeof found === "string" ? found : undefined;
}

interface Asked {
  readonly format: (value: number) => string;
  readonly value: number | undefined;
}

function numberText(text: string, row: CaseRow): string | undefined {
  const [name = "", isRuns, path = ""] = text.split(" ");
  if (isRuns === undefined) return undefined;
  if (isRuns === "runs") {
    const values = valuesAt(row, path);
    return values.length === 0 ? undefined : runsText(values, formatOf(name));
  }
  const { format, value } = askedOf(text, row);
  return value === undefined ? undefined : format(value);
}

function formatOf(name: string): (value: number) => string {
  if (name in CELL_FORMATS) return CELL_FORMATS[name as CellFormat];
  throw new Error(`a case has the format "${name}", which is none of ${Object.keys(CELL_FORMATS).join(", ")}`);
}

function askedOf(text: string, row: CaseRow): Asked {
  const [name = "", ...words] = text.split(" ");
  const reducer = REDUCERS[words[0] ?? ""];
  const [first = "", operator, second = ""] = reducer === undefined ? words : words.slice(1);
  const reduced = (path: string): number | undefined => {
    const values = valuesAt(row, path);
    return values.length === 0 ? undefined : (reducer ?? median)(values);
  };
  const [one, other] = [reduced(first), operator === undefined ? undefined : reduced(second)];
  const combined = one === undefined || other === undefined ? undefined : operator === "/" ? one / other : one - other;
  const value = operator === undefined ? one : combined;
  return { format: formatOf(name), value: value !== undefined && Number.isFinite(value) ? value : undefined };
}

/** Samples of all runs of a group. */
function valuesAt({ results }: CaseRow, path: string): readonly number[] {
  const [group, fields] = path.includes(":") ? (path.split(":") as [string, string]) : ["", path];
  const within = (one: unknown, name: string): unknown => (one as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  const found = fields.split(".").reduce<readonly unknown[]>((all, name) => all.flatMap((one) => within(one, name)), results[group] ?? []);
  return found.filter((one) => typeof one === "number");
}

const RELATIONS = {
  under: { text: "under", isMet: (value: number, limit: number): boolean => value < limit },
  atMost: { text: "at most", isMet: (value: number, limit: number): boolean => value <= limit },
  atLeast: { text: "at least", isMet: (value: number, limit: number): boolean => value >= limit },
} as const;

/** The targets of a case, each for the rows that it is for and that have its numbers. Pure. */
export function goalsOf(specs: readonly GoalSpec[], rows: readonly CaseRow[]): readonly Goal[] {
  return specs.flatMap((spec) => rows.filter((row) => isFor(spec, row)).flatMap((row) => goalOf(spec, row, rows)));
}

function isFor({ at, variants }: GoalSpec, { shape, variant }: CaseRow): boolean {
  return (at === undefined || [at].flat().some((size) => isSize(shape, parseShape(size)))) && (variants?.includes(variant) ?? true);
}

function isSize(one: Shape | undefined, other: Shape | undefined): boolean {
  return one?.services === other?.services && one?.endpoints === other?.endpoints;
}

function goalOf(spec: GoalSpec, row: CaseRow, rows: readonly CaseRow[]): readonly Goal[] {
  const [wantedVariant, wantedShape] = [spec.beside ?? row.variant, spec.against === undefined ? row.shape : parseShape(spec.against)];
  const other = rows.find(({ shape, variant }) => variant === wantedVariant && isSize(shape, wantedShape));
  const { format, value } = askedOf(spec.value, row);
  const base = other === undefined ? undefined : askedOf(spec.value, other).value;
  const relation = (["under", "atMost", "atLeast"] as const).find((name) => spec[name] !== undefined);
  if (relation === undefined) throw new Error(`the target "${spec.what}" has no limit`);
  if (value === undefined || base === undefined) return [];
  const measured = spec.against === undefined ? value : value / base;
  const limit = (spec[relation] ?? 0) * (spec.beside === undefined ? 1 : base);
  const text = spec.against === undefined ? format : ratioText;
  const wanted = (spec.wanted ?? `${RELATIONS[relation].text} {limit}`).replace("{limit}", text(limit));
  const shown = spec.measured === undefined ? text(measured) : (cellText(spec.measured, row) ?? "");
  return [{ what: cellText(spec.what, row) ?? spec.what, wanted, measured: shown, isMet: RELATIONS[relation].isMet(measured, limit) }];
}
