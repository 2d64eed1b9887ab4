import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { ratioText, runsText, timeText } from "../number-text.ts";
import { runVmRole } from "../role-process.ts";
import type { IpvsParameters, IpvsRun } from "../roles/ipvs.ts";
import { median } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SMALL: Shape = { services: 100, endpoints: 10 };
const MIDDLE: Shape = { services: 1_000, endpoints: 10 };
const LARGE: Shape = { services: 5_000, endpoints: 10 };
const RUNS = 3;
const CHANGES = 100;
const COLD_MAX = 1.5;
/** What differs by less than that is noise. */
const CHANGE_MAX = 1.25;

/** Samples of one size. */
interface IpvsData {
  readonly shape: Shape;
  readonly runs: readonly IpvsRun[];
}

/** The ipvs backend beside the tools alone, in a guest, since few kernels of today's machines have IPVS. */
export const ipvsCase: BenchCase = {
  name: "ipvs",
  about:
    "the ipvs backend in user-mode Linux: cold start beside ipset and ipvsadm with the same content, one endpoint changed, and a restart",
  needs: ["uml", "ipvsadm"],
  async run(context): Promise<CaseResult> {
    const data: IpvsData[] = [];
    for (const shape of shapesOr(context.isQuick ? [SMALL, MIDDLE] : [SMALL, MIDDLE, LARGE], context))
      data.push(await measure(shape, context));
    return {
      title: "ipvs",
      about:
        "In a guest (user-mode Linux, one CPU, system calls are slow): compare only within this table. *Cold start* is from objects in the store to everything in force in an empty namespace. " +
        "*Tools alone* gives the sets and servers that are then there to `ipset restore` and `ipvsadm -R`, without Turnout, addresses and rules, in another empty namespace. " +
        "*Change* is the CPU time of one endpoint removed or added, the tools' included, the mean of all. *Restart*: a second process starts; that it writes nothing is checked.",
      columns: ["services x endpoints", "cold start", "tools alone", "cold / tools", "change (CPU)", "restart"],
      rows: data.map(({ shape, runs }) => [
        shapeText(shape),
        runsText(coldOf(runs), timeText),
        runsText(toolsOf(runs), timeText),
        ratioText(median(coldOf(runs)) / median(toolsOf(runs))),
        runsText(changeOf(runs), timeText),
        runsText(
          runs.map(({ adoption }) => adoption.totalMs),
          timeText,
        ),
      ]),
      targets: [...coldGoals(data), ...changeGoals(data)],
      data,
    };
  },
};

async function measure(shape: Shape, { runs = RUNS, progress }: CaseContext): Promise<IpvsData> {
  const all: IpvsRun[] = [];
  for (let run = 1; run <= runs; run++) {
    progress(`${shapeText(shape)}: run ${run}`);
    const parameters: IpvsParameters = { shape, changes: CHANGES };
    all.push(await runVmRole<IpvsRun>("ipvs-run", parameters));
  }
  return { shape, runs: all };
}

function coldGoals(data: readonly IpvsData[]): readonly Goal[] {
  return data
    .filter(({ shape }) => isShape(shape, MIDDLE.services, MIDDLE.endpoints))
    .map(({ shape, runs }) => {
      const ratio = median(coldOf(runs)) / median(toolsOf(runs));
      return {
        what: `cold start with ipvs at ${shapeText(shape)}`,
        wanted: `${ratioText(COLD_MAX)} of ipset restore and ipvsadm -R at most`,
        measured: ratioText(ratio),
        isMet: ratio <= COLD_MAX,
      };
    });
}

function changeGoals(data: readonly IpvsData[]): readonly Goal[] {
  const [small, large] = [SMALL, LARGE].map((wanted) => data.find(({ shape }) => isShape(shape, wanted.services, wanted.endpoints)));
  if (small === undefined || large === undefined) return [];
  const ratio = median(changeOf(large.runs)) / median(changeOf(small.runs));
  return [
    {
      what: `CPU of one change with ipvs at ${shapeText(large.shape)}, beside ${shapeText(small.shape)}`,
      wanted: `the same: ${ratioText(CHANGE_MAX)} at most`,
      measured: ratioText(ratio),
      isMet: ratio <= CHANGE_MAX,
    },
  ];
}

function coldOf(runs: readonly IpvsRun[]): readonly number[] {
  return runs.map(({ cold }) => cold.totalMs);
}

function toolsOf(runs: readonly IpvsRun[]): readonly number[] {
  return runs.map(({ reload }) => reload.setsMs + reload.serversMs);
}

function changeOf(runs: readonly IpvsRun[]): readonly number[] {
  return runs.map(({ changeCpuMs }) => changeCpuMs);
}
