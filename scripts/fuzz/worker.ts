import { parentPort, workerData } from "node:worker_threads";
import { loadTargets, readCorpus } from "./corpus.ts";
import { Coverage } from "./coverage.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Runner } from "./runner.ts";
import { Random } from "./random.ts";

/** What a worker is started with. */
export interface WorkerTask {
  /** Where targets and corpora are. */
  readonly repository: string;
  /** Names of the targets to play; an index of the heartbeat is one of this list. */
  readonly targets: readonly string[];
  readonly seed: number;
  /** New inputs for each target; or how long to play all of them, guided by coverage. */
  readonly effort: { readonly cases: number } | { readonly untilMs: number };
  readonly shared: SharedArrayBuffer;
}

/** What a worker tells. */
export type WorkerMessage =
  | { readonly kind: "finding"; readonly target: string; readonly input: Uint8Array; readonly what: string }
  | { readonly kind: "played"; readonly target: string; readonly cases: number; readonly kept: number };

/** How long one target is played before the next one has its turn, in ms. */
const TURN_MS = 3000;

async function work({ repository, targets, seed, effort, shared }: WorkerTask, notify: (message: WorkerMessage) => void): Promise<void> {
  const all = await loadTargets(repository);
  const heartbeat = new Heartbeat(shared);
  const players = targets.flatMap((name, index) => {
    const placed = all.find(({ target }) => target.name === name);
    if (placed === undefined) return [];
    const parts = { target: placed.target, index, corpus: readCorpus(placed), random: new Random(seed + index), heartbeat };
    return [{ name, runner: new Runner({ ...parts, onFinding: (finding) => notify({ kind: "finding", ...finding }) }) }];
  });
  const report = ({ name, runner }: (typeof players)[number]): void =>
    notify({ kind: "played", target: name, cases: runner.cases, kept: runner.kept });
  for (const one of players) {
    await one.runner.replay();
    if ("cases" in effort) await one.runner.mutations(effort.cases);
    report(one);
  }
  if ("cases" in effort) return;
  const coverage = new Coverage();
  while (Date.now() < effort.untilMs) {
    for (const one of players) {
      await one.runner.guided(Math.min(effort.untilMs, Date.now() + TURN_MS), coverage);
      report(one);
    }
  }
  coverage.close();
}

const port = parentPort;
if (port !== null) await work(workerData as WorkerTask, (message) => port.postMessage(message));
