import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parse } from "yaml";
import type { BenchCase, CaseContext, CaseResult } from "../case.ts";
import { cellsOf, cellText, goalsOf } from "../case-table.ts";
import type { CaseRow, Cell, GoalSpec } from "../case-table.ts";
import { kubeProxyVersion } from "../kube-proxy/process.ts";
import { runRole, runVmRole } from "../role-process.ts";
import { interleave } from "../statistics.ts";
import { parseShape, shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { MEASURES } from "./measures.ts";
import { traffic } from "./traffic.ts";

/** A number for all sizes, or by the most Services that it is for. */
type BySize = number | (Readonly<Record<string, number>> & { readonly rest: number });

/** How one line, or one group of all lines, is measured. */
interface Measured {
  /** What a process of its own does, see `roles`; or a measure of `measures.ts`. */
  readonly role?: string;
  readonly measure?: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly runs?: BySize;
  /** `--runs` does not change the number of runs. */
  readonly isFixed?: true;
  /** Sizes above have no place in a quick run. */
  readonly quickUpTo?: number;
}

interface Variant extends Measured {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The only standard size that it is measured at. */
  readonly size?: string;
}

/** A bench as it is written: `cases/NAME.yaml`. */
interface CaseSpec extends Measured {
  readonly name: string;
  readonly about: string;
  readonly needs: readonly string[];
  readonly title: string;
  readonly text: string;
  readonly sizes?: readonly string[];
  /** The parameter that `--runs` sets; default the number of runs. */
  readonly runsAre?: string;
  readonly namespace?: "same";
  readonly isPinned?: true;
  readonly isInVm?: true;
  readonly variants?: readonly Variant[];
  /** Variants are groups of one row. */
  readonly isOneRow?: true;
  /** The measure gives a result for each of several rows, by their names. */
  readonly isSplit?: true;
  /** A variant whose results the others have as the group `base`. */
  readonly comparedWith?: string;
  readonly columns: Readonly<Record<string, Cell>>;
  readonly goals?: readonly GoalSpec[];
}

/** In the order of the standard run. */
const NAMES =
  "cold-start change start memory store connect restart iptables ipvs ebpf traffic counting rivals why client-install change-sets flip watchers relay first-state kpng userspace".split(
    " ",
  );
const WRITTEN: Readonly<Record<string, BenchCase>> = { traffic };

/** Every bench. */
export const CASES: readonly BenchCase[] = NAMES.map((name) => WRITTEN[name] ?? caseOf(readSpec(name)));

function readSpec(name: string): CaseSpec {
  return parse(readFileSync(new URL(`${name}.yaml`, import.meta.url), "utf8"), { merge: true }) as CaseSpec;
}

function caseOf(spec: CaseSpec): BenchCase {
  const { name, about, needs, title, text, columns, goals = [] } = spec;
  return {
    name,
    about,
    needs,
    run: async (context): Promise<CaseResult> => {
      const rows = await measureRows(spec, context);
      const program = process.env["KUBE_PROXY"] ?? "kube-proxy";
      return {
        title: title.includes("{") ? title.replace("{kube-proxy}", kubeProxyVersion(program)) : title,
        about: text.includes("{") ? (rows[0] === undefined ? text : (cellText(text, rows[0]) ?? text)) : text,
        columns: Object.keys(columns),
        rows: rows.map((row) => cellsOf(columns, row)),
        targets: goalsOf(goals, rows),
        data: rows,
      };
    },
  };
}

async function measureRows(spec: CaseSpec, context: CaseContext): Promise<readonly CaseRow[]> {
  const shapes = spec.sizes === undefined ? [undefined] : (context.shapes ?? spec.sizes.map(parseShape));
  const rows: CaseRow[] = [];
  for (const shape of shapes) rows.push(...(await measureAt(shape, spec, context)));
  return rows;
}

async function measureAt(shape: Shape | undefined, spec: CaseSpec, context: CaseContext): Promise<readonly CaseRow[]> {
  const isQuickEnough = ({ quickUpTo = Infinity }: Measured): boolean => !context.isQuick || (shape?.services ?? 0) <= quickUpTo;
  const isSize = ({ size }: Variant): boolean =>
    size === undefined || context.shapes !== undefined || (shape !== undefined && shapeText(parseShape(size)) === shapeText(shape));
  const { variants = [{ name: "" }], isSplit, comparedWith } = spec;
  const chosen = isQuickEnough(spec) ? variants.filter((one) => isSize(one) && isQuickEnough(one)) : [];
  const results = new Map(chosen.map((one) => [one, [] as unknown[]]));
  // Runs take turns, so that a machine that is slower at one time than at another favours none.
  for (const variant of interleave(chosen.map((what) => ({ what, runs: runsOf({ ...spec, ...what }, shape, context) })))) {
    context.progress([shape && shapeText(shape), variant.name].filter(Boolean).join(", ") || "one run");
    results.get(variant)?.push(await measureOnce(shape, spec, variant, context));
  }
  if (spec.isOneRow === true)
    return [{ shape, variant: "", results: Object.fromEntries([...results].map(([{ name }, all]) => [name, all])) }];
  const base = chosen.find(({ name }) => name === comparedWith);
  return [...results].flatMap(([variant, all]): readonly CaseRow[] => {
    const { name, labels } = variant;
    if (isSplit === true) {
      const splits = Map.groupBy(
        all.flatMap((one) => Object.entries(one as object) as [string, unknown][]),
        ([split]) => split,
      );
      return [...splits].map(([split, of]) => ({ shape, variant: split, results: { "": of.map(([, result]) => result) } }));
    }
    const others = base === undefined || base === variant ? {} : { base: results.get(base) ?? [] };
    return [{ shape, variant: name, ...(labels === undefined ? {} : { labels }), results: { "": all, ...others } }];
  });
}

function runsOf(
  { runs = 1, isFixed, runsAre }: Measured & Pick<CaseSpec, "runsAre">,
  shape: Shape | undefined,
  context: CaseContext,
): number {
  const isAsked = isFixed !== true && runsAre === undefined;
  return (isAsked ? context.runs : undefined) ?? atSize(runs, shape);
}

function atSize(value: BySize, shape: Shape | undefined): number {
  if (typeof value === "number") return value;
  const bound = Object.keys(value).find((most) => (shape?.services ?? 0) <= Number(most));
  return value[bound ?? "rest"] ?? value.rest;
}

async function measureOnce(shape: Shape | undefined, spec: CaseSpec, variant: Variant, context: CaseContext): Promise<unknown> {
  const { role, measure } = { ...spec, ...variant };
  const given = Object.entries({ ...spec.parameters, ...variant.parameters }).map(([name, value]) => {
    const isBySize = typeof value === "object" && value !== null && "rest" in value;
    return [name, isBySize ? atSize(value as BySize, shape) : value] as const;
  });
  const asked = spec.runsAre === undefined || context.runs === undefined ? {} : { [spec.runsAre]: context.runs };
  const parameters = { ...(shape === undefined ? {} : { shape }), ...Object.fromEntries(given), ...asked };
  if (measure !== undefined) return await MEASURES[measure]?.(parameters as never, context.progress);
  if (spec.isInVm === true) return await runVmRole(role ?? "", parameters);
  const { namespace } = spec;
  const options = {
    ...(namespace === undefined ? {} : { namespace }),
    ...(spec.isPinned === true ? { cpu: availableParallelism() - 1 } : {}),
  };
  return await runRole(role ?? "", parameters, options);
}
