import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Crowd, monotonicMs } from "./crowd.ts";
import { inFolder } from "./folder.ts";
import { openRole, resultOf } from "./role-process.ts";
import type { StateServerReport } from "./roles/state-server.ts";
import type { Shape } from "./workload.ts";

/** A node-state server, and who watches it. */
export interface WatchRun {
  readonly shape: Shape;
  /** Watchers of nodes that are not counted, served first: what all share is there afterwards. */
  readonly first: number;
  readonly watchers: number;
  /** Each watches a node of its own, or all the same one. */
  readonly nodes: "different" | "same";
  /** Streams of one connection; a node-state server takes 100 at most. */
  readonly streamsPerConnection: number;
  readonly changes: number;
  /** How long to count answers while changes never end, ms; 0: not at all. */
  readonly stormMs: number;
}

/** What both saw. */
export interface WatchRunReport {
  readonly stateServer: StateServerReport;
  /** From the first connect until all had their first state, ms; for the watchers that count. */
  readonly startMs: number;
  /** For each change, when each watcher had it, ms of the machine's monotonic clock. */
  readonly arrivalsMs: readonly (readonly number[])[];
  /** Most rows set and deleted in one change set of a change. */
  readonly operationsMax: number;
  /** Change sets a second during the storm, all watchers together. */
  readonly stormPerSecond: number;
}

/** Let a node-state server serve, all watchers connect, and changes happen one after another, each when everybody has the one before. */
export async function runWatch(run: WatchRun): Promise<WatchRunReport> {
  const { shape, first, changes, stormMs } = run;
  return await inFolder(async (folder) => {
    const socket = join(folder, "node.sock");
    const server = openRole("stateServer", { socket, shape, changes, stormMs }, { namespace: "same" });
    const crowd = new Crowd(socket, run.streamsPerConnection);
    const goAt = async (phase: string): Promise<void> => {
      await server.phase(phase);
      server.go();
    };
    try {
      await server.phase("serving");
      const startMs = await openAll(crowd, run, async () => {
        server.go();
        await server.phase("shared");
      });
      server.go();
      await goAt("all");
      const arrivalsMs: (readonly number[])[] = [];
      for (let change = 0; change < changes; change++) {
        const heard = crowd.change();
        await goAt("quiet");
        arrivalsMs.push((await heard).slice(first));
        await goAt("changed");
      }
      const { operationsMax } = crowd;
      if (stormMs > 0) await goAt("storm");
      const [heard, fromMs] = [crowd.heard, monotonicMs()];
      await sleep(stormMs);
      const stormPerSecond = stormMs === 0 ? 0 : ((crowd.heard - heard) / (monotonicMs() - fromMs)) * 1000;
      return { stateServer: await resultOf<StateServerReport>(server), startMs, arrivalsMs, operationsMax, stormPerSecond };
    } finally {
      crowd.close();
      server.kill();
    }
  });
}

/** Open the watchers that are not counted, then, behind `between`, all others; resolves to the ms in which those had their first states. */
export async function openAll(
  crowd: Crowd,
  { first, watchers, nodes }: Pick<WatchRun, "first" | "watchers" | "nodes">,
  between: () => Promise<void>,
): Promise<number> {
  await crowd.open(Array.from({ length: first }, (_, index) => `early-${index}`));
  await between();
  const startMs = monotonicMs();
  await crowd.open(Array.from({ length: watchers }, (_, index) => `n${nodes === "same" ? 0 : index}`));
  return monotonicMs() - startMs;
}
