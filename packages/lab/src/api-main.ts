/** The process that is the API server of a cluster: started in its fabric, led over stdin and stdout. */
import { serveLines } from "./agent/lines.ts";
import type { ApiCalls, ApiStart } from "./api-calls.ts";
import { createApiServer } from "./apiserver/server.ts";

const start = JSON.parse(process.argv[2] ?? "{}") as ApiStart;
const server = await createApiServer(start);

const calls: ApiCalls = {
  apply: async (objects) => {
    for (const object of objects) server.apply(object);
  },
  delete: async ({ kind, namespace, name }) => server.delete(kind, namespace, name),
  objects: async (kind) => server.objects(kind),
  misbehave: async (what) => {
    server.misbehave(what);
  },
  behave: async () => server.behave(),
  dropWatches: async () => server.dropWatches(),
  compact: async () => server.compact(),
  watchCount: async () => server.watchCount,
  pause: () => server.pause(),
  resume: () => server.resume(),
  kubeconfig: async () => server.kubeconfig(),
};

await serveLines(process.stdin, process.stdout, { ...calls });
process.exit(0);
