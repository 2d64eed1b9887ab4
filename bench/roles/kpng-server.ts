import { Store } from "@turnout/core";
import { createKpngApi } from "@turnout/kpng";
import { createStoreProvider } from "@turnout/server/serve";
import type { Harness } from "../line-channel.ts";
import { fillStore } from "../subject.ts";
import type { Shape } from "../workload.ts";
import { serveOn } from "./state-server.ts";

/** What a node-state server is to serve over kpng's protocols. */
export interface KpngServerParameters {
  readonly socket: string;
  readonly shape: Shape;
  /** Watchers, one after another. */
  readonly watchers: number;
}

/**
 * Serve a store to watchers of kpng's; its result is the CPU time that each of them took, ms.
 *
 * Phases: `serving`, then `watcher` before each, which ends when it has everything.
 */
export async function kpngServer({ socket, shape, watchers }: KpngServerParameters, harness: Harness): Promise<readonly number[]> {
  // As turnout serve has it, for whoever speaks kpng's.
  const store = new Store({ keepsPodNames: true });
  await fillStore(store, shape);
  const server = await serveOn(
    socket,
    createStoreProvider(store, () => undefined),
    { kpng: createKpngApi },
  );
  await harness.reached("serving");
  const cpuMs: number[] = [];
  for (let watcher = 0; watcher < watchers; watcher++) {
    const cpu = process.cpuUsage();
    await harness.reached("watcher");
    const { user, system } = process.cpuUsage(cpu);
    cpuMs.push((user + system) / 1000);
  }
  await server.close();
  return cpuMs;
}
