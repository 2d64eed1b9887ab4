import { availableParallelism } from "node:os";
import type { BenchCase, CaseResult, Goal } from "../case.ts";
import { ratioText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { FlipsParameters, FlipsReport } from "../roles/flips.ts";
import { median, percentile } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [100, 1_000, 10_000].map((services) => ({ services, endpoints: 10 }));
const FLIPS = 20_000;
const OPERATIONS_MOST = 2;
/** Ten thousand services do not fit where a hundred do: what is looked at is colder in the CPU's caches. */
const RATIO_MOST = 3;

/** Samples of one size. */
interface FlipData {
  readonly shape: Shape;
  readonly report: FlipsReport;
}

/** What one endpoint's change costs the core, whatever else there is. */
export const flip: BenchCase = {
  name: "flip",
  about: "one flipped endpoint: rows told and core work at 100, 1,000 and 10,000 services",
  needs: ["taskset"],
  async run(context): Promise<CaseResult> {
    const data: FlipData[] = [];
    for (const shape of context.shapes ?? SHAPES) {
      context.progress(shapeText(shape));
      const parameters: FlipsParameters = { shape, flips: context.runs ?? FLIPS };
      const options = { namespace: "same", cpu: availableParallelism() - 1, profileDir: context.profileDir } as const;
      data.push({ shape, report: await runRole<FlipsReport>("flips", parameters, options) });
    }
    return {
      title: "One flipped endpoint, in the core",
      about:
        `The readiness of one endpoint changes, ${FLIPS.toLocaleString("en-US")} times, one Service after another, spread over the whole cluster; pinned to one CPU. From the slice (parsed JSON) entering the store until the change set is returned. ` +
        "*Own view* is the view of one node, as in `turnout run`; *shared table* is the table from which `turnout serve` computes the rows of all its nodes. *Operations* are rows set and deleted.",
      columns: ["services x endpoints", "operations", "own view p50", "p99", "shared table p50", "p99"],
      rows: data.map(({ shape, report: { viewUs, tableUs, operationsMax } }) => [
        shapeText(shape),
        String(operationsMax),
        ...[viewUs, tableUs].flatMap((us) => [usText(median(us)), usText(percentile(us, 0.99))]),
      ]),
      targets: targetsOf(data),
      data,
    };
  },
};

function targetsOf(data: readonly FlipData[]): readonly Goal[] {
  const operations = Math.max(...data.map(({ report }) => report.operationsMax));
  const rows: Goal = {
    what: "one flipped endpoint, rows",
    wanted: `at most ${OPERATIONS_MOST}`,
    measured: String(operations),
    isMet: operations <= OPERATIONS_MOST,
  };
  const [least, most] = [data.at(0), data.at(-1)];
  if (least === undefined || most === undefined || least === most) return [rows];
  const ratio = Math.max(
    median(most.report.viewUs) / median(least.report.viewUs),
    median(most.report.tableUs) / median(least.report.tableUs),
  );
  const what = `the core's work for it at ${most.shape.services.toLocaleString("en-US")} services against ${least.shape.services.toLocaleString("en-US")}`;
  return [rows, { what, wanted: `under ${ratioText(RATIO_MOST)}`, measured: ratioText(ratio), isMet: ratio < RATIO_MOST }];
}

function usText(us: number): string {
  return `${us.toFixed(1)} µs`;
}
