import type { BenchCase, CaseResult, Goal } from "../case.ts";
import { memoryText, rateText, timeText } from "../number-text.ts";
import { median, percentile } from "../statistics.ts";
import { runWatch } from "../watch-run.ts";
import type { WatchRun, WatchRunReport } from "../watch-run.ts";
import { shapeText } from "../workload.ts";

const LARGE = { services: 10_000, endpoints: 10 };
const SMALL = { services: 1_000, endpoints: 10 };
const CHANGES = 50;
const STORM_MS = 5_000;
/** Told first and not counted, so that the bytes all share are there before memory is compared. */
const FIRST = 2;
const COMMON = { first: FIRST, changes: CHANGES, stormMs: STORM_MS };
const RUNS: readonly WatchRun[] = [
  { ...COMMON, shape: LARGE, watchers: 1, nodes: "same", streamsPerConnection: 100 },
  { ...COMMON, shape: LARGE, watchers: 10, nodes: "same", streamsPerConnection: 100 },
  { ...COMMON, shape: LARGE, watchers: 98, nodes: "same", streamsPerConnection: 100 },
  { ...COMMON, shape: LARGE, watchers: 98, nodes: "different", streamsPerConnection: 100 },
  { ...COMMON, shape: LARGE, watchers: 1_000, nodes: "different", streamsPerConnection: 100 },
  { ...COMMON, shape: LARGE, watchers: 5_000, nodes: "different", streamsPerConnection: 100 },
  { ...COMMON, shape: SMALL, watchers: 1_000, nodes: "different", streamsPerConnection: 1 },
];
const MANY = 1_000;
const MOST = 5_000;
const KIB = 1024;
const MB = 1_000_000;
const TARGET_MS = 1_000;
const TARGET_FIRST_MS = 10_000;
const TARGET_PEAK_MB = 1_500;
const TARGET_KIB = 64;
const TARGET_OPERATIONS = 2;

/** Samples of one run. */
interface WatchersData {
  readonly run: WatchRun;
  readonly report: WatchRunReport;
}

/** One node-state server, many watchers, over a unix socket. */
export const watchers: BenchCase = {
  name: "watchers",
  about: "one node-state server, up to 5,000 watchers of as many nodes over a unix socket",
  needs: [],
  async run(context): Promise<CaseResult> {
    const data: WatchersData[] = [];
    for (const one of RUNS) {
      const run = { ...one, changes: context.runs ?? one.changes, profileDir: context.profileDir };
      for (const shape of context.shapes ?? [run.shape]) {
        context.progress(`${shapeText(shape)}, ${run.watchers} watchers of ${run.nodes === "same" ? "one node" : "as many nodes"}`);
        data.push({ run: { ...run, shape }, report: await runWatch({ ...run, shape }) });
      }
    }
    return {
      title: "Watchers of one node-state server",
      about:
        "The node-state server is one process, with a unix socket; all watchers are in a second one. A watcher is one stream; *streams each* is the number of streams on one HTTP/2 connection. A watcher asks for both " +
        "families, and again as soon as an answer is complete. It takes packed rows, reads the heads of messages and counts rows, but neither unpacks nor decodes them, because in a cluster other machines do that. " +
        `${FIRST} watchers of other nodes are served first and not counted. *First states* is from the first connect until all watchers, which connect at once, have their first state, with the node-state server's CPU time for it; *most memory* is the most that it had resident until then. ` +
        `*Change to all*: one endpoint's readiness changes in the store, when all watchers have the change before; from then until a watcher has read the change (${CHANGES} changes, all watchers). ` +
        "*CPU* is the node-state server's for one change, including answers and the watchers' next requests; *encoded* is the number of rows encoded for it. *Memory each* is what an idle watcher adds to the node-state server: " +
        "objects and their buffers after garbage collection; in brackets resident memory, where the allocator keeps what was needed to send the first states. With fewer than 1,000 watchers it is the whole process. " +
        `*Storm*: change sets a second, all watchers together, while one Service changes in each turn of the node-state server's event loop (${STORM_MS / 1000} s); a slower watcher gets only the latest state.`,
      columns: [
        "services x endpoints",
        "watchers",
        "nodes",
        "streams each",
        "first states",
        "their CPU",
        "most memory",
        "change to all p50",
        "p99",
        "max",
        "operations",
        "CPU",
        "encoded",
        "memory each",
        "storm",
      ],
      rows: data.map(rowOf),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

function latenciesOf({ report }: WatchersData): readonly number[] {
  const { stateServer, watchers: seen } = report;
  return seen.arrivalsMs.flatMap((arrivals, change) => arrivals.map((arrivalMs) => arrivalMs - (stateServer.changedMs[change] ?? 0)));
}

function heapKib({ run, report: { stateServer } }: WatchersData): number {
  return (stateServer.all.heapBytes - stateServer.shared.heapBytes) / run.watchers / KIB;
}

function residentKib({ run, report: { stateServer } }: WatchersData): number {
  return (stateServer.all.residentBytes - stateServer.shared.residentBytes) / run.watchers / KIB;
}

function rowOf(one: WatchersData): readonly string[] {
  const { run, report } = one;
  const latencies = latenciesOf(one);
  const memory = `${kibText(heapKib(one))} (${kibText(residentKib(one))})`;
  return [
    shapeText(run.shape),
    String(run.watchers),
    run.nodes === "same" ? "1" : String(run.watchers),
    String(Math.min(run.streamsPerConnection, run.watchers + run.first)),
    timeText(report.watchers.startMs),
    timeText(report.stateServer.reportingCpuMs),
    memoryText(report.stateServer.peakBytes),
    timeText(percentile(latencies, 0.5)),
    timeText(percentile(latencies, 0.99)),
    timeText(percentile(latencies, 1)),
    String(report.watchers.operationsMax),
    timeText(median(report.stateServer.cpuMs)),
    `${median(report.stateServer.rowsEncoded)}`,
    // Of a few watchers it would be the shared caches that are counted.
    run.watchers < MANY ? `node-state server ${memoryText(report.stateServer.all.residentBytes)}` : memory,
    rateText(report.watchers.stormPerSecond),
  ];
}

function targetsOf(one: WatchersData): readonly Goal[] {
  const { run, report } = one;
  if (run.shape.services !== LARGE.services || run.watchers < MANY) return [];
  const p99 = percentile(latenciesOf(one), 0.99);
  const count = run.watchers.toLocaleString("en-US");
  const what = `${count} watchers of ${count} nodes at 10,000 x 10`;
  const change = {
    what: `${what}: a change to all, p99`,
    wanted: `under ${timeText(TARGET_MS)}`,
    measured: timeText(p99),
    isMet: p99 < TARGET_MS,
  };
  if (run.watchers >= MOST) return [change];
  const operations = report.watchers.operationsMax;
  const kib = heapKib(one);
  const { startMs } = report.watchers;
  const { peakBytes } = report.stateServer;
  return [
    {
      what: `${what}: first states`,
      wanted: `under ${timeText(TARGET_FIRST_MS)}`,
      measured: timeText(startMs),
      isMet: startMs < TARGET_FIRST_MS,
    },
    {
      what: `${what}: most memory for them`,
      wanted: `under ${memoryText(TARGET_PEAK_MB * MB)}`,
      measured: memoryText(peakBytes),
      isMet: peakBytes < TARGET_PEAK_MB * MB,
    },
    change,
    { what: `${what}: memory of an idle one`, wanted: `under ${kibText(TARGET_KIB)}`, measured: kibText(kib), isMet: kib < TARGET_KIB },
    {
      what: `${what}: one endpoint flips`,
      wanted: `at most ${TARGET_OPERATIONS} rows`,
      measured: String(operations),
      isMet: operations <= TARGET_OPERATIONS,
    },
  ];
}

function kibText(kib: number): string {
  return `${Math.round(kib)} KiB`;
}
