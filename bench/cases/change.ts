import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseResult, Goal } from "../case.ts";
import { ratioText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { Changes, ChangesParameters } from "../roles/changes.ts";
import { percentile, summarize } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [
  { services: 100, endpoints: 10 },
  { services: 1_000, endpoints: 10 },
  { services: 10_000, endpoints: 10 },
  // Across a power of two and back, the costlier kind of change for the nft backend.
  { services: 10_000, endpoints: 9 },
  { services: 45_000, endpoints: 2 },
];
const CHANGES = 1_000;
const QUIET_MS = 3_000;
/** The p99 at most, ms. */
const LIMITS: readonly { readonly shape: Shape; readonly p99Ms: number }[] = [
  { shape: { services: 10_000, endpoints: 10 }, p99Ms: 5 },
  { shape: { services: 10_000, endpoints: 9 }, p99Ms: 5 },
  { shape: { services: 45_000, endpoints: 2 }, p99Ms: 10 },
];
const GROWTH_MAX = 1.5;

/** Samples of one size. */
interface ChangeData {
  readonly shape: Shape;
  readonly changes: Changes;
}

/** One endpoint taken away or brought back. */
export const change: BenchCase = {
  name: "change",
  about: "one endpoint added or removed, from the event entering the store to nft's answer",
  needs: ["root", "nft"],
  async run(context): Promise<CaseResult> {
    const data: ChangeData[] = [];
    for (const shape of shapesOr(SHAPES, context)) {
      context.progress(shapeText(shape));
      const parameters: ChangesParameters = { shape, count: context.runs ?? CHANGES, quietMs: QUIET_MS };
      data.push({ shape, changes: await runRole<Changes>("changes", parameters, { profileDir: context.profileDir }) });
    }
    return {
      title: "One endpoint added or removed",
      about:
        "From the event entering the store to nft's answer. Each change is made a moment after the one before is in force, one Service after another, spread over the whole table. Endpoints are removed " +
        "at any place in a list, and each is added again ten changes later. *First* is the first change of the process: nft is started, and V8 has compiled nothing yet. " +
        "The next 19 changes warm up and are not counted.",
      columns: ["services x endpoints", "changes", "p50", "p99", "max", "first"],
      rows: data.map(({ shape, changes: { firstMs, samplesMs } }) => {
        const { count, median, p99, max } = summarize(samplesMs);
        return [shapeText(shape), String(count), timeText(median), timeText(p99), timeText(max), timeText(firstMs)];
      }),
      targets: targetsOf(data),
      data,
    };
  },
};

function targetsOf(data: readonly ChangeData[]): readonly Goal[] {
  const p99Of = ({ services, endpoints }: Shape): number | undefined => {
    const found = data.find(({ shape }) => isShape(shape, services, endpoints));
    return found === undefined ? undefined : percentile(found.changes.samplesMs, 0.99);
  };
  const absolute = LIMITS.flatMap(({ shape, p99Ms }): readonly Goal[] => {
    const p99 = p99Of(shape);
    if (p99 === undefined) return [];
    const what = `one-endpoint change at ${shapeText(shape)}, p99`;
    return [{ what, wanted: `under ${timeText(p99Ms)}`, measured: timeText(p99), isMet: p99 < p99Ms }];
  });
  const [few, many] = [p99Of({ services: 100, endpoints: 10 }), p99Of({ services: 10_000, endpoints: 10 })];
  if (few === undefined || many === undefined) return absolute;
  const growth: Goal = {
    what: "the same at 10,000 x 10 against its p99 at 100 services",
    wanted: `under ${ratioText(GROWTH_MAX)}`,
    measured: ratioText(many / few),
    isMet: many / few < GROWTH_MAX,
  };
  return [...absolute, growth];
}
