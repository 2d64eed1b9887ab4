import { Worker } from "node:worker_threads";
import { Heartbeat } from "./heartbeat.ts";
import type { FuzzFinding } from "./target.ts";
import type { WorkerMessage, WorkerTask } from "./worker.ts";

const HANG_MS = 60_000;
/** Loading all packages takes seconds, and minutes on a machine with many times more to do than it has cores. */
const LOAD_MS = 600_000;
const POLL_EVERY_MS = 500;
/** What one thread may keep, in MiB. Targets together take a third of it. */
const HEAP_MIB_MAX = 512;

/** What to play, and how much; see {@link WorkerTask}. */
export interface FuzzOptions extends Omit<WorkerTask, "shared"> {
  /** An input that takes longer hangs; default a minute. */
  readonly hangMs?: number;
  /** How long loading all targets may take; default ten minutes. */
  readonly loadMs?: number;
}

/** The targets were not loaded in time, so nothing was played. */
export class NotLoadedError extends Error {
  override readonly name = "NotLoadedError";
  constructor(loadMs: number) {
    super(`no target was loaded within ${loadMs / 1_000} s: the machine is too busy, try again later`);
  }
}

/** What was played of one target. */
export interface RunResult {
  readonly cases: number;
  /** Inputs that reached new code, beside the corpus. */
  readonly kept: number;
}

/** What came of it. */
export interface FuzzOutcome {
  readonly ran: ReadonlyMap<string, RunResult>;
  readonly findings: readonly FuzzFinding[];
}

/**
 * Play targets in a thread of their own, so that an input that hangs, or takes all memory, is found as well.
 *
 * Edges: after such a one, its target is left out and the others are played from the beginning.
 */
export async function fuzz(options: FuzzOptions, onNews: (outcome: FuzzOutcome) => void = () => undefined): Promise<FuzzOutcome> {
  const ran = new Map<string, RunResult>();
  const findings: FuzzFinding[] = [];
  for (let targets = options.targets; targets.length > 0;) {
    const fatal = await runInWorker({ ...options, targets }, (message) => {
      if (message.kind === "played") ran.set(message.target, message);
      else findings.push({ target: message.target, input: Buffer.from(message.input), what: message.what });
      onNews({ ran, findings });
    });
    if (fatal === undefined) break;
    findings.push(fatal);
    targets = targets.filter((name) => name !== fatal.target);
  }
  return { ran, findings };
}

/** Gives the input that ended the thread, if one did. @throws {NotLoadedError}, or the thread's error when it came before any input. */
async function runInWorker(options: FuzzOptions, onMessage: (message: WorkerMessage) => void): Promise<FuzzFinding | undefined> {
  const heartbeat = new Heartbeat();
  const { hangMs = HANG_MS, loadMs = LOAD_MS, ...task } = options;
  const workerData: WorkerTask = { ...task, shared: heartbeat.shared };
  const worker = new Worker(new URL("./worker.ts", import.meta.url), {
    workerData,
    execArgv: ["--conditions=@turnout/source"],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
  });
  worker.on("message", onMessage);
  let failure: Error | undefined;
  worker.on("error", (error: Error) => (failure = error));
  let count = heartbeat.count;
  let sinceMs = Date.now();
  let isHanging = false;
  const look = setInterval(() => {
    if (heartbeat.count !== count) [count, sinceMs] = [heartbeat.count, Date.now()];
    isHanging = Date.now() - sinceMs > (count === 0 ? loadMs : hangMs);
    if (isHanging) void worker.terminate();
  }, POLL_EVERY_MS);
  // Not `once` of node:events: it would reject with the error.
  await new Promise((resolve) => worker.once("exit", resolve));
  clearInterval(look);
  if (failure === undefined && !isHanging) return undefined;
  if (heartbeat.count === 0) throw failure ?? new NotLoadedError(loadMs);
  const { target, input } = heartbeat.last;
  const what = isHanging ? `it takes longer than ${hangMs} ms` : `it ended the thread: ${failure?.stack ?? ""}`;
  return { target: options.targets[target] ?? "", input, what };
}
