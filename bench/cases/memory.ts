import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Target } from "../case.ts";
import { sampleMemory } from "../memory-sampler.ts";
import type { MemorySampler } from "../memory-sampler.ts";
import { memoryText, runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { ChangesParameters } from "../roles/changes.ts";
import type { DaemonParameters, DaemonRun } from "../roles/daemon.ts";
import { median } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 10_000, endpoints: 10 }];
const RUNS = 3;
const CHANGES = 500;
/** Long enough for V8 to notice that nothing happens and to give memory back. */
const IDLE_MS = 30_000;
const PEAK_MAX = 700e6;
const AFTER_MAX = 250e6;

/** Resident bytes of the whole process tree. */
interface MemoryUse {
  readonly peak: number;
  readonly after: number;
  readonly peakInChanges: number;
  readonly afterChanges: number;
}

/** Which program is measured: the proxy's parts in a bench process, or the installed command with the API server's protocol. */
type Program = "parts" | "turnout run";

/** Samples of one size and program. */
interface MemoryData {
  readonly shape: Shape;
  readonly program: Program;
  readonly use: readonly MemoryUse[];
  readonly startMs: readonly number[];
}

/** Memory of the process tree, parts of the proxy in one process. */
export const memory: BenchCase = {
  name: "memory",
  about: "resident memory of the process tree in a cold start and after, store to nft in one process",
  needs: ["root", "nft"],
  run: (context) => runMemory("parts", context),
};

/** Memory of the process tree of the real command. */
export const daemon: BenchCase = {
  name: "daemon",
  about: "the installed `turnout run` against an API server emulator: memory of its process tree, start to rules in force",
  needs: ["root", "nft", "ip", "built"],
  run: (context) => runMemory("turnout run", context),
};

async function runMemory(program: Program, context: CaseContext): Promise<CaseResult> {
  const data: MemoryData[] = [];
  for (const shape of shapesOr(SHAPES, context)) {
    const use: MemoryUse[] = [];
    const startMs: number[] = [];
    for (let run = 1; run <= (context.runs ?? RUNS); run++) {
      context.progress(`${shapeText(shape)}: ${program}, run ${run}`);
      const one = await measure(program, shape);
      use.push(one.use);
      startMs.push(...one.startMs);
    }
    data.push({ shape, program, use, startMs });
  }
  const isDaemon = program === "turnout run";
  return {
    title: isDaemon ? "The real command: `turnout run --source kube`" : "Memory: store, core and nft backend in one process",
    about:
      "Resident memory of the process and all its children, summed every 20 ms. *After* is 30 s after the cold start, *after changes* 30 s after " +
      `${CHANGES} one-endpoint changes; garbage is collected when V8 sees fit. ${
        isDaemon
          ? "The command as built, both families, against the lab's API server emulator; *start* is from starting the process to rules in force."
          : "Objects are made one by one and kept by nobody but the store. Runs from source, so Node's type stripper is in it."
      }`,
    columns: ["services x endpoints", "peak", "after", "peak in changes", "after changes", ...(isDaemon ? ["start"] : [])],
    rows: data.map(rowOf),
    targets: data.flatMap(targetsOf),
    data,
  };
}

async function measure(program: Program, shape: Shape): Promise<{ readonly use: MemoryUse; readonly startMs: readonly number[] }> {
  const found: Record<string, number> = {};
  let sampler: MemorySampler | undefined;
  const onPhase = async (name: string, pid: number): Promise<void> => {
    if (name === "started") sampler = sampleMemory(pid);
    else if (sampler !== undefined) {
      found[`${name} now`] = sampler.now();
      found[`${name} peak`] = sampler.takePeak();
    }
  };
  try {
    const startMs: number[] = [];
    if (program === "parts") {
      const parameters: ChangesParameters = { shape, count: CHANGES, idleMs: IDLE_MS };
      await runRole("changes", parameters, { onPhase });
    } else {
      const parameters: DaemonParameters = { shape, changes: CHANGES, idleMs: IDLE_MS };
      startMs.push((await runRole<DaemonRun>("daemon", parameters, { onPhase })).startMs);
    }
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

function rowOf({ shape, use, startMs }: MemoryData): readonly string[] {
  const column = (key: keyof MemoryUse): string =>
    runsText(
      use.map((one) => one[key]),
      memoryText,
    );
  const columns = [shapeText(shape), column("peak"), column("after"), column("peakInChanges"), column("afterChanges")];
  return startMs.length === 0 ? columns : [...columns, runsText(startMs, timeText)];
}

function targetsOf({ shape, program, use }: MemoryData): readonly Target[] {
  if (!isShape(shape, 10_000, 10)) return [];
  const target = (what: string, bytes: number, max: number): Target => ({
    what: `memory ${what} at ${shapeText(shape)} (${program})`,
    wanted: `under ${memoryText(max)}`,
    measured: memoryText(bytes),
    isMet: bytes < max,
  });
  return [
    target("in a cold start", median(use.map(({ peak }) => peak)), PEAK_MAX),
    target("afterwards", median(use.map(({ after }) => after)), AFTER_MAX),
    target("after changes", median(use.map(({ afterChanges }) => afterChanges)), AFTER_MAX),
  ];
}
