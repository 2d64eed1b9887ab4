import { systemClock } from "@turnout/core/process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createStoreProvider, serveNodeState } from "@turnout/server/serve";
import { createBenchLog, createStore, fillStore, NODE_VIEW } from "../subject.ts";
import { openConnection, openWatcher } from "../watch-client.ts";

/** How often. */
export interface FirstStateParameters {
  readonly runs: number;
}

/** Time from the last list of an empty cluster to the first change sets of both families at a client that waits, ms each. */
export async function firstState({ runs }: FirstStateParameters): Promise<{ readonly ms: readonly number[] }> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) times.push(await once());
  return { ms: times };
}

async function once(): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const path = join(directory, "node.sock");
  const store = createStore();
  const provider = createStoreProvider(store, () => undefined);
  const server = await serveNodeState({
    provider,
    listen: [`unix://${path}`],
    version: "bench",
    clock: systemClock(),
    log: createBenchLog(),
  });
  const connection = openConnection(path);
  const welcomed = Promise.withResolvers<void>();
  const reported = Promise.withResolvers<number>();
  let families = 0;
  connection.session.once("connect", () => welcomed.resolve());
  openWatcher(connection, NODE_VIEW.nodeName, NODE_VIEW.settings, ({ full, set }) => {
    if (!full || set > 0) throw new Error("an empty cluster has something in it");
    families += 1;
    if (families === 2) reported.resolve(performance.now());
  });
  await welcomed.promise;
  while (server.stats.questions === 0) await new Promise((resolve) => setImmediate(resolve));
  const startMs = performance.now();
  await fillStore(store, { services: 0, endpoints: 1 });
  const ms = (await reported.promise) - startMs;
  connection.close();
  await server.close();
  await rm(directory, { recursive: true });
  return ms;
}
