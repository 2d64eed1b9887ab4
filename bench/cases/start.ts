import { readFileSync } from "node:fs";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { threadsTimeUs } from "../cpu-time.ts";
import { residentBytes, sampleMemory } from "../memory-sampler.ts";
import { memoryText, runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { DaemonParameters, DaemonRun } from "../roles/daemon.ts";
import { interleave, median } from "../statistics.ts";

type Source = DaemonParameters["source"];

const SOURCES: readonly Source[] = ["kube", "file"];
const RUNS = 5;
/** Long enough for what comes after the first sync: a look for rules of former proxies. */
const IDLE_MS = 5_000;
const START_MAX_MS = 400;
const IDLE_MAX = 80e6;

/** One start. */
interface Start {
  /** From exec of the command to the first rules of IPv4, ms. */
  readonly startMs: number;
  /** CPU time of the process until then, without that of the tools it runs, ms. */
  readonly cpuMs: number;
  /** Resident bytes of the process when it idles. */
  readonly ownBytes: number;
  /** The same with the tools that it keeps. */
  readonly treeBytes: number;
}

/** The real command on a host without Services: what every node pays. */
export const start: BenchCase = {
  name: "start",
  about: "the installed `turnout run` without any Service: start to the first rule, memory of the idle process",
  needs: ["root", "nft", "ip", "built"],
  async run(context): Promise<CaseResult> {
    const data = await measureAll(context);
    return {
      title: "Start and idle: the installed command without Services",
      about:
        "`turnout run` as built, both families, on a host without rules; the source (as in *Memory*) has a Node and a ServiceCIDR. *Start* is from exec of the command until the rules of IPv4 " +
        `are in force; *CPU* is the process's own until then, without tools. *Memory* is what is resident ${IDLE_MS / 1000} s later, of the process and with the two nft that it keeps.`,
      columns: ["source", "start", "CPU", "memory, process", "memory, with tools"],
      rows: SOURCES.map((source) => rowOf(source, data[source])),
      targets: SOURCES.flatMap((source) => targetsOf(source, data[source])),
      data,
    };
  },
};

async function measureAll({ runs = RUNS, progress }: CaseContext): Promise<Readonly<Record<Source, readonly Start[]>>> {
  const data: Record<Source, Start[]> = { kube: [], file: [] };
  for (const source of interleave(SOURCES.map((what) => ({ what, runs })))) {
    progress(`source ${source}, run ${data[source].length + 1}`);
    data[source].push(await measure(source));
  }
  return data;
}

async function measure(source: Source): Promise<Start> {
  let found: Omit<Start, "startMs"> = { cpuMs: Number.NaN, ownBytes: Number.NaN, treeBytes: Number.NaN };
  const onPhase = (name: string, pid: number): Promise<void> => {
    if (name === "in-force") found = { ...found, cpuMs: threadsTimeUs(pid) / 1000 };
    if (name === "idle") found = { ...found, ownBytes: residentBytes(readFileSync(`/proc/${pid}/statm`, "utf8")), treeBytes: treeOf(pid) };
    return Promise.resolve();
  };
  const parameters: DaemonParameters = { shape: { services: 0, endpoints: 0 }, source, changes: 0, idleMs: IDLE_MS };
  const { startMs } = await runRole<DaemonRun>("daemon", parameters, { onPhase });
  return { startMs, ...found };
}

function treeOf(pid: number): number {
  const sampler = sampleMemory(pid);
  sampler.stop();
  return sampler.now();
}

function rowOf(source: Source, starts: readonly Start[]): readonly string[] {
  const column = (key: keyof Start, text: (value: number) => string): string =>
    runsText(
      starts.map((one) => one[key]),
      text,
    );
  return [source, column("startMs", timeText), column("cpuMs", timeText), column("ownBytes", memoryText), column("treeBytes", memoryText)];
}

function targetsOf(source: Source, starts: readonly Start[]): readonly Goal[] {
  const startMs = median(starts.map((one) => one.startMs));
  const bytes = median(starts.map(({ ownBytes }) => ownBytes));
  return [
    {
      what: `start to the first rule of an empty host, source ${source}`,
      wanted: `under ${timeText(START_MAX_MS)}`,
      measured: timeText(startMs),
      isMet: startMs < START_MAX_MS,
    },
    {
      what: `memory of the idle process, source ${source}`,
      wanted: `under ${memoryText(IDLE_MAX)}`,
      measured: memoryText(bytes),
      isMet: bytes < IDLE_MAX,
    },
  ];
}
