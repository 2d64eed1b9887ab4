import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { SAMPLE_MS, sampleMemory } from "../memory-sampler.ts";
import type { MemorySampler } from "../memory-sampler.ts";
import { memoryText, runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { DaemonParameters, DaemonRun } from "../roles/daemon.ts";
import { median } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 10_000, endpoints: 10 }];
const SOURCES: readonly { readonly source: DaemonParameters["source"]; readonly runs: number }[] = [
  { source: "kube", runs: 2 },
  { source: "file", runs: 1 },
];
const CHANGES = 500;
/** Long enough for V8 to notice that nothing happens and to give memory back. */
const IDLE_MS = 15_000;
const PEAK_MAX = 700e6;
const AFTER_MAX = 180e6;

/** Resident bytes of the whole process tree. */
interface MemoryUse {
  readonly peak: number;
  readonly after: number;
  readonly peakInChanges: number;
  readonly afterChanges: number;
}

/** Samples of one size and source. */
interface MemoryData {
  readonly shape: Shape;
  readonly source: DaemonParameters["source"];
  readonly use: readonly MemoryUse[];
  readonly startMs: readonly number[];
}

/** The real command: memory of its process tree, and how long it takes from its start to rules in force. */
export const memory: BenchCase = {
  name: "memory",
  about: "the installed `turnout run`: memory of its process tree in a cold start and after, start to rules in force",
  needs: ["root", "nft", "ip", "built"],
  async run(context): Promise<CaseResult> {
    const data: MemoryData[] = [];
    for (const shape of shapesOr(SHAPES, context))
      for (const { source, runs } of SOURCES) data.push(await measureAll(shape, source, runs, context));
    return {
      title: "Memory: the installed command",
      about:
        "`turnout run` as built, both families; the source is the lab's API server emulator (`kube`) or a directory of JSON files (`file`). Resident memory of the process and all " +
        `its children, summed every ${SAMPLE_MS} ms. *Peak* is from the start of the process until rules are in force; *after* is ${IDLE_MS / 1000} s later; *after changes* is ${IDLE_MS / 1000} s after ` +
        `${CHANGES} one-endpoint changes, 50 a second. Garbage collection is not forced. *Start* is the time from the start of the process until rules are in force.`,
      columns: ["services x endpoints", "source", "peak", "after", "peak in changes", "after changes", "start"],
      rows: data.map(rowOf),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

async function measureAll(shape: Shape, source: MemoryData["source"], runs: number, context: CaseContext): Promise<MemoryData> {
  const use: MemoryUse[] = [];
  const startMs: number[] = [];
  for (let run = 1; run <= (context.runs ?? runs); run++) {
    context.progress(`${shapeText(shape)}: source ${source}, run ${run}`);
    const one = await measure(shape, source);
    use.push(one.use);
    startMs.push(one.startMs);
  }
  return { shape, source, use, startMs };
}

async function measure(shape: Shape, source: MemoryData["source"]): Promise<{ readonly use: MemoryUse; readonly startMs: number }> {
  const found: Record<string, number> = {};
  let sampler: MemorySampler | undefined;
  const onPhase = async (name: string, pid: number): Promise<void> => {
    if (name === "started") sampler = sampleMemory(pid);
    else if (sampler !== undefined) {
      found[`${name} now`] = sampler.now();
      found[`${name} peak`] = sampler.resetPeak();
    }
  };
  try {
    const parameters: DaemonParameters = { shape, source, changes: CHANGES, idleMs: IDLE_MS };
    const { startMs } = await runRole<DaemonRun>("daemon", parameters, { onPhase });
    return { use: useFrom(found), startMs };
  } finally {
    sampler?.stop();
  }
}

function useFrom(found: Readonly<Record<string, number>>): MemoryUse {
  const at = (name: string): number => {
    const value = found[name];
    if (value === undefined) throw new Error(`no memory was measured: ${name}`);
    return value;
  };
  return {
    peak: at("in-force peak"),
    after: at("idle now"),
    peakInChanges: at("changed peak"),
    afterChanges: at("idle-again now"),
  };
}

function rowOf({ shape, source, use, startMs }: MemoryData): readonly string[] {
  const column = (key: keyof MemoryUse): string =>
    runsText(
      use.map((one) => one[key]),
      memoryText,
    );
  return [
    shapeText(shape),
    source,
    column("peak"),
    column("after"),
    column("peakInChanges"),
    column("afterChanges"),
    runsText(startMs, timeText),
  ];
}

function targetsOf({ shape, source, use }: MemoryData): readonly Goal[] {
  if (!isShape(shape, 10_000, 10)) return [];
  const target = (what: string, key: keyof MemoryUse, max: number): Goal => {
    const bytes = median(use.map((one) => one[key]));
    return {
      what: `memory ${what} at ${shapeText(shape)}, source ${source}`,
      wanted: `under ${memoryText(max)}`,
      measured: memoryText(bytes),
      isMet: bytes < max,
    };
  };
  return [
    target("in a cold start", "peak", PEAK_MAX),
    target("afterwards", "after", AFTER_MAX),
    target("after changes", "afterChanges", AFTER_MAX),
  ];
}
