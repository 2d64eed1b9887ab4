import { join } from "node:path";
import { createStoreProvider } from "@turnout/server/serve";
import { createStore, fillStore, NODE_VIEW } from "../subject.ts";
import { inFolder } from "../folder.ts";
import { openConnection, openWatcher } from "../watch-client.ts";
import { serveOn } from "./state-server.ts";

/** How often. */
export interface FirstStateParameters {
  readonly runs: number;
}

/** Time from the last list of an empty cluster to the first change sets of both families at a client that waits, ms each. */
export async function firstState({ runs }: FirstStateParameters): Promise<{ readonly ms: readonly number[] }> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) times.push(await inFolder(once));
  return { ms: times };
}

async function once(folder: string): Promise<number> {
  const path = join(folder, "node.sock");
  const store = createStore();
  const server = await serveOn(
    path,
    createStoreProvider(store, () => undefined),
  );
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
  return ms;
}
