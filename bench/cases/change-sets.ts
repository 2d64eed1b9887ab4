import type { BenchCase, CaseResult, Goal } from "../case.ts";
import { runRole } from "../role-process.ts";
import type { TracesParameters, TracesReport } from "../roles/traces.ts";
import { TRACES } from "../traces.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 1_000, endpoints: 10 }];
/** One look after each event merges nothing; the other as many as a busy second has. */
const EVENTS_PER_LOOK: readonly number[] = [1, 100];
const UPDATES: readonly number[] = [1_000, 10_000, 50_000];
/** What must say nothing at all. */
const SILENT: readonly string[] = ["noise", "everything again"];

/** Samples of one size. */
interface ChangeSetsData {
  readonly shape: Shape;
  readonly report: TracesReport;
}

/** What of the API's events is told to a node. */
export const changeSets: BenchCase = {
  name: "change-sets",
  about: "events in, change sets out: noise, relists, rolling restarts, node churn, a busy reader",
  needs: [],
  async run(context): Promise<CaseResult> {
    const data: ChangeSetsData[] = [];
    for (const shape of context.shapes ?? SHAPES) {
      context.progress(shapeText(shape));
      const parameters: TracesParameters = { shape, eventsPerLook: EVENTS_PER_LOOK, updates: UPDATES };
      const report = await runRole<TracesReport>("traces", parameters, { namespace: "same", profileDir: context.profileDir });
      data.push({ shape, report });
    }
    return {
      title: "Events in, change sets out",
      about:
        "API objects are put into a node-state server's store, as a source does it. One watcher follows one of 1,000 nodes, and asks again at once. It looks after each event, so nothing is merged; " +
        "for the column *looking every 100*, after each 100 events. An event is one object in a new version. Relists are in the trace *everything again* only. Another cluster has other events, and so another ratio; the traces are made of these. " +
        `${TRACES.map(({ name, about }) => `*${name}*: ${about}`).join(". ")}. ` +
        "*Busy reader*: one endpoint changes this many times while the watcher is busy, and a second watcher takes each change. *Memory* is how much more the node-state server's process holds afterwards, after garbage collection.",
      columns: [
        "services x endpoints",
        "trace",
        "events",
        "change sets",
        "rows",
        "looking every 100",
        "events : change sets",
        "CPU of an event",
        "memory",
      ],
      rows: data.flatMap(rowsOf),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

function rowsOf({ shape, report }: ChangeSetsData): readonly (readonly string[])[] {
  const size = shapeText(shape);
  const ran = TRACES.map(({ name }, index) => {
    const [each, merged] = report.traces[index] ?? [];
    if (each === undefined || merged === undefined) throw new Error(`${name} was not played`);
    const ratio = each.changeSets === 0 ? "all : 0" : `${(each.events / each.changeSets).toFixed(1)} : 1`;
    const cpu = `${((each.cpuMs / each.events) * 1000).toFixed(0)} µs`;
    return [size, name, number(each.events), number(each.changeSets), number(each.rows), number(merged.changeSets), ratio, cpu, ""];
  });
  const busy = report.slow.map(({ updates, changeSets: sets, rows, retainedBytes }) => {
    const memory = `${(retainedBytes / 1e6).toFixed(1)} MB`;
    return [size, "busy reader", number(updates), number(sets), number(rows), "", `${number(updates / sets)} : 1`, "", memory];
  });
  return [...ran, ...busy];
}

function targetsOf({ report }: ChangeSetsData): readonly Goal[] {
  const silent = TRACES.flatMap(({ name }, index): readonly Goal[] => {
    const sets = report.traces[index]?.[0]?.changeSets ?? NaN;
    return SILENT.includes(name) ? [{ what: `change sets: ${name}`, wanted: "0", measured: String(sets), isMet: sets === 0 }] : [];
  });
  const sets = report.slow.map((one) => one.changeSets);
  const isMet = sets.every((each) => each === 1);
  return [
    ...silent,
    { what: "change sets after any number of updates while busy", wanted: "1", measured: [...new Set(sets)].join(", "), isMet },
  ];
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}
