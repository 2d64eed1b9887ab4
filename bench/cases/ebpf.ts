import { createCluster } from "@turnout/lab";
import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { ratioText, runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { BackendAdoption, BackendParameters, BackendRun, BackendRunParameters } from "../roles/backend-run.ts";
import { interleave, median, percentile } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SMALL: Shape = { services: 100, endpoints: 10 };
const MIDDLE: Shape = { services: 1_000, endpoints: 10 };
const LARGE: Shape = { services: 10_000, endpoints: 10 };
const RUNS = 3;
const CHANGES = 500;
const QUIET_MS = 3_000;
const COLD_MAX_MS = 2_000;
const CHANGE_MAX_MS = 5;
/** What differs by less than that is noise. */
const GROWTH_MAX = 1.25;
const BACKENDS = ["ebpf", "nft"] as const;

/** One backend's run and the restart after it. */
interface EbpfRun {
  readonly run: BackendRun;
  readonly adoption: BackendAdoption;
}

/** Samples of one size. */
interface EbpfData {
  readonly shape: Shape;
  readonly runs: Readonly<Record<(typeof BACKENDS)[number], readonly EbpfRun[]>>;
}

/** The eBPF backend beside nft on the same node. */
export const ebpfCase: BenchCase = {
  name: "ebpf",
  about: "the eBPF backend beside nft on a node with two pods: cold start, one endpoint changed, and a restart",
  needs: ["root", "ip", "nft", "ebpf"],
  async run(context): Promise<CaseResult> {
    const data: EbpfData[] = [];
    for (const shape of shapesOr([SMALL, MIDDLE, LARGE], context)) data.push(await measure(shape, context));
    return {
      title: "ebpf",
      about:
        "Each run is on a new node of the laboratory, with two pods, a cgroup and a bpffs of its own; runs of the two backends take turns. *Cold start* is from objects in the store to everything in force: " +
        "rows, rendering, planning, loading programs and attaching them. *Change* is from the event entering the store until it is in force, one endpoint removed or added, as in *One endpoint added or removed*; of all runs. " +
        "*CPU* is the CPU time of one change in Turnout's process, without that of nft. *Restart*: a second process starts; that it writes nothing is checked.",
      columns: [
        "services x endpoints",
        "backend",
        "cold start",
        "cold start (CPU)",
        "change p50",
        "p99",
        "CPU",
        "restart",
        "of it reading",
      ],
      rows: data.flatMap(({ shape, runs }) => BACKENDS.map((backend) => rowOf(shape, backend, runs[backend]))),
      targets: data.flatMap(({ shape, runs }) => (isShape(shape, LARGE.services, LARGE.endpoints) ? goalsOf(runs.ebpf, data) : [])),
      data,
    };
  },
};

async function measure(shape: Shape, { runs = RUNS, progress, profileDir }: CaseContext): Promise<EbpfData> {
  const all: Record<(typeof BACKENDS)[number], EbpfRun[]> = { ebpf: [], nft: [] };
  for (const backend of interleave(BACKENDS.map((what) => ({ what, runs })))) {
    progress(`${shapeText(shape)}: ${backend}`);
    const cluster = await createCluster({ nodes: [{ name: "node1", pods: 2 }], cgroups: ["node1"] });
    try {
      const place = cluster.node("node1");
      const parameters: BackendRunParameters = { backend, shape, changes: CHANGES, quietMs: QUIET_MS };
      const run = await runRole<BackendRun>("backend-run", parameters, { place, profileDir });
      const again: BackendParameters = { backend, shape };
      // What the changes have left away is missing: the second process finds it, and begins with the whole.
      await runRole("backend-restore", again, { place });
      all[backend].push({ run, adoption: await runRole<BackendAdoption>("backend-adopt", again, { place }) });
    } finally {
      cluster.destroy();
    }
  }
  return { shape, runs: all };
}

function rowOf(shape: Shape, backend: string, runs: readonly EbpfRun[]): readonly string[] {
  const changes = runs.flatMap(({ run }) => run.changesMs);
  const text = (of: (one: EbpfRun) => number): string => runsText(runs.map(of), timeText);
  return [
    shapeText(shape),
    backend,
    text(({ run }) => run.cold.totalMs),
    timeText(median(runs.map(({ run }) => run.cold.cpuMs))),
    timeText(median(changes)),
    timeText(percentile(changes, 0.99)),
    timeText(median(runs.map(({ run }) => run.changeCpuMs))),
    text(({ adoption }) => adoption.totalMs),
    timeText(median(runs.map(({ adoption }) => adoption.observeMs))),
  ];
}

function goalsOf(runs: readonly EbpfRun[], data: readonly EbpfData[]): readonly Goal[] {
  const coldMs = median(runs.map(({ run }) => run.cold.totalMs));
  const p99 = percentile(
    runs.flatMap(({ run }) => run.changesMs),
    0.99,
  );
  const cpuOf = (some: readonly EbpfRun[]): number => median(some.map(({ run }) => run.changeCpuMs));
  const small = data.find(({ shape }) => isShape(shape, SMALL.services, SMALL.endpoints));
  const ratio = small === undefined ? undefined : cpuOf(runs) / cpuOf(small.runs.ebpf);
  const at = shapeText(LARGE);
  return [
    {
      what: `cold start with eBPF at ${at}`,
      wanted: `under ${timeText(COLD_MAX_MS)}`,
      measured: timeText(coldMs),
      isMet: coldMs < COLD_MAX_MS,
    },
    {
      what: `one change with eBPF at ${at}, p99`,
      wanted: `under ${timeText(CHANGE_MAX_MS)}`,
      measured: timeText(p99),
      isMet: p99 < CHANGE_MAX_MS,
    },
    ...(ratio === undefined
      ? []
      : [
          {
            what: `CPU of one change with eBPF at ${at}, beside ${shapeText(SMALL)}`,
            wanted: `the same: ${ratioText(GROWTH_MAX)} at most`,
            measured: ratioText(ratio),
            isMet: ratio <= GROWTH_MAX,
          },
        ]),
  ];
}
