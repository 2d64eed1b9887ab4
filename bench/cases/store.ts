import { availableParallelism } from "node:os";
import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseResult, Goal } from "../case.ts";
import { rateText, runsText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { Mix, StoreParameters, StoreRates } from "../roles/store-only.ts";
import { median } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 10_000, endpoints: 10 }];
const ROUNDS = 5;
const EVENTS_PER_ROUND = 20_000;
const TARGET_PER_SECOND = 100_000;
const MIXES: readonly { readonly mix: Mix; readonly eventsPerPull: number; readonly text: string }[] = [
  { mix: "services", eventsPerPull: 1, text: "Services (the port changes), rows pulled after each" },
  { mix: "slices", eventsPerPull: 1, text: "slices (one endpoint's readiness changes), rows pulled after each" },
  { mix: "both", eventsPerPull: 1, text: "one of each in turn, rows pulled after each" },
  { mix: "both", eventsPerPull: 100, text: "one of each in turn, rows pulled after each 100" },
];

/** Samples of one size and mix. */
interface StoreData {
  readonly shape: Shape;
  readonly mix: Mix;
  readonly eventsPerPull: number;
  readonly text: string;
  readonly rates: StoreRates;
}

/** Objects in, rows out, without any backend. */
export const store: BenchCase = {
  name: "store",
  about: "objects in, rows out: events a second on one core",
  needs: ["taskset"],
  async run(context): Promise<CaseResult> {
    const data: StoreData[] = [];
    for (const shape of shapesOr(SHAPES, context)) {
      for (const one of MIXES) {
        context.progress(`${shapeText(shape)}: ${one.text}`);
        const { mix, eventsPerPull } = one;
        const rounds = context.runs ?? ROUNDS;
        const parameters: StoreParameters = { shape, eventsPerPull, mix, rounds, eventsPerRound: EVENTS_PER_ROUND };
        const cpu = availableParallelism() - 1;
        const rates = await runRole<StoreRates>("store-alone", parameters, { namespace: "same", cpu, profileDir: context.profileDir });
        data.push({ shape, ...one, rates });
      }
    }
    return {
      title: "Store alone",
      about:
        "Changed API objects (parsed JSON) go into the store, and the rows of one view are pulled; validation, topology, claims and the comparison with the row before are " +
        `included. The process is pinned to one CPU; rounds of ${EVENTS_PER_ROUND.toLocaleString("en-US")} events, after two rounds to warm up. *Per CPU second* divides by the CPU time of all threads, including garbage collection, so ` +
        "other work on the machine disturbs it less.",
      columns: ["services x endpoints", "events", "per second", "per CPU second"],
      rows: data.map(({ shape, text, rates }) => [
        shapeText(shape),
        text,
        runsText(rates.perSecond, rateText),
        runsText(rates.perCpuSecond, rateText),
      ]),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

function targetsOf({ shape, mix, eventsPerPull, rates }: StoreData): readonly Goal[] {
  if (!isShape(shape, 10_000, 10) || eventsPerPull !== 1) return [];
  const rate = median(rates.perSecond);
  const what = `store alone, events a second: ${mix}`;
  return [{ what, wanted: rateText(TARGET_PER_SECOND), measured: rateText(rate), isMet: rate >= TARGET_PER_SECOND }];
}
