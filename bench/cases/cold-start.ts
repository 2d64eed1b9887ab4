import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import type { Layout } from "../layouts.ts";
import { ratioText, runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { Baseline, BaselineParameters } from "../roles/baseline.ts";
import type { ColdStart } from "../roles/cold-start.ts";
import { interleave, median } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [
  { services: 100, endpoints: 10 },
  { services: 1_000, endpoints: 10 },
  { services: 10_000, endpoints: 10 },
  { services: 45_000, endpoints: 1 },
  { services: 5_000, endpoints: 50 },
];
const OUR_RUNS = 5;
/** Runs of B and of A: A at 10,000 takes a minute, and both grow with the square of the number of services. */
const BASELINE_RUNS: readonly { readonly upTo: number; readonly b: number; readonly a: number }[] = [
  { upTo: 1_000, b: 3, a: 3 },
  { upTo: 5_000, b: 1, a: 0 },
  { upTo: 10_000, b: 3, a: 1 },
  { upTo: Number.POSITIVE_INFINITY, b: 0, a: 0 },
];
const BASELINE_CHANGES = 10;

/** Samples of one size. */
interface ColdStartData {
  readonly shape: Shape;
  readonly ours: readonly ColdStart[];
  readonly a: readonly Baseline[];
  readonly b: readonly Baseline[];
}

/** Objects in the store → rules in force, beside both of kube-proxy's rulesets. */
export const coldStart: BenchCase = {
  name: "cold-start",
  about: "objects in the store to rules in force, beside kube-proxy's rulesets loaded by nft -f",
  needs: ["root", "nft"],
  async run(context): Promise<CaseResult> {
    const data: ColdStartData[] = [];
    for (const shape of shapesOr(SHAPES, context)) data.push(await measure(shape, context));
    return {
      title: "Cold start",
      about:
        "From objects in the store to rules in force, each time in a new process and a new network namespace. For Turnout everything is counted (rows, rendering, planning, nft), " +
        "for the layouts only `nft -f` of a ready file. Runs of the three take turns. In brackets: the ratio of CPU times (of Node and nft), which other work on the machine disturbs less. " +
        "*Change A* and *change B*: one endpoint removed from that layout or added to it by `nft -f`, including the start of nft.",
      columns: [
        "services x endpoints",
        "Turnout",
        "layout A",
        "A / Turnout (CPU)",
        "layout B",
        "B / Turnout (CPU)",
        "change A",
        "change B",
      ],
      rows: data.map(rowOf),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

async function measure(shape: Shape, { runs, profileDir, progress }: CaseContext): Promise<ColdStartData> {
  const plan = BASELINE_RUNS.find(({ upTo }) => shape.services <= upTo);
  const order = interleave([
    { what: "ours" as const, runs: runs ?? OUR_RUNS },
    { what: "B" as const, runs: plan?.b ?? 0 },
    { what: "A" as const, runs: plan?.a ?? 0 },
  ]);
  const ours: ColdStart[] = [];
  const baselines: Record<Layout, Baseline[]> = { A: [], B: [] };
  for (const what of order) {
    progress(`${shapeText(shape)}: ${what === "ours" ? "turnout" : `layout ${what}`}`);
    if (what === "ours") ours.push(await runRole<ColdStart>("cold-start", shape, { profileDir }));
    else {
      const changes = shape.endpoints > 1 ? BASELINE_CHANGES : 0;
      const parameters: BaselineParameters = { layout: what, shape, changes };
      baselines[what].push(await runRole<Baseline>("baseline", parameters));
    }
  }
  return { shape, ours, a: baselines.A, b: baselines.B };
}

function rowOf({ shape, ours, a, b }: ColdStartData): readonly string[] {
  const own = ours.map(({ totalMs }) => totalMs);
  const ownCpu = median(ours.map(({ cpuMs }) => cpuMs));
  const baseline = (runs: readonly Baseline[]): readonly [string, string, string] => {
    if (runs.length === 0) return ["not run", "", ""];
    const loads = runs.map(({ loadMs }) => loadMs);
    const changes = runs.flatMap(({ changeMs }) => changeMs);
    return [
      runsText(loads, timeText),
      `${ratioText(median(loads) / median(own))} (${ratioText(median(runs.map(({ cpuMs }) => cpuMs)) / ownCpu)})`,
      changes.length === 0 ? "" : timeText(median(changes)),
    ];
  };
  const [loadA, ratioA, changeA] = baseline(a);
  const [loadB, ratioB, changeB] = baseline(b);
  return [shapeText(shape), runsText(own, timeText), loadA, ratioA, loadB, ratioB, changeA, changeB];
}

function targetsOf({ shape, ours, a, b }: ColdStartData): readonly Goal[] {
  const own = median(ours.map(({ totalMs }) => totalMs));
  const within = (limitMs: number): Goal => ({
    what: `cold start, ${shapeText(shape)}`,
    wanted: `under ${timeText(limitMs)}`,
    measured: timeText(own),
    isMet: own < limitMs,
  });
  if (isShape(shape, 45_000, 1)) return [within(5_000)];
  const against = (name: string, runs: readonly Baseline[], factor: number): readonly Goal[] => {
    if (runs.length === 0) return [];
    const ratio = median(runs.map(({ loadMs }) => loadMs)) / own;
    const wanted = factor === 1 ? "not slower" : `at least ${ratioText(factor)} faster`;
    return [
      { what: `cold start, ${shapeText(shape)}, against layout ${name}`, wanted, measured: ratioText(ratio), isMet: ratio >= factor },
    ];
  };
  if (isShape(shape, 100, 10)) return against("B", b, 1);
  if (isShape(shape, 5_000, 50)) return [within(12_000), ...against("B", b, 2.5)];
  return isShape(shape, 10_000, 10) ? [...against("A", a, 20), ...against("B", b, 10)] : [];
}
