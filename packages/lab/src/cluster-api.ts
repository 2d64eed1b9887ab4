import { callProgram } from "./agent/agent.ts";
import { API_CALLS } from "./api-calls.ts";
import type { ApiCalls, ApiStart } from "./api-calls.ts";
import type { Cluster } from "./cluster.ts";

/** The API server of a cluster: an emulator in the fabric, reached by every node. */
export interface ClusterApi extends ApiCalls {
  /** e.g. `http://172.18.0.254:6443`, as the nodes see it. */
  readonly url: string;
  close(): void;
}

const PORT = 6443;

/**
 * Start an API server emulator in the cluster's fabric.
 *
 * Shape: it starts empty; see `nodeManifests` for the cluster's own Node objects.
 * Edges: it ends with {@link ClusterApi.close} or the cluster.
 * @throws {ProxyError} `tool_failed` when it does not come up.
 */
export async function startClusterApi(cluster: Cluster): Promise<ClusterApi> {
  const host = cluster.fabric.address(cluster.families[0] ?? "IPv4");
  const start: ApiStart = { host, port: PORT };
  const calls = callProgram<ApiCalls>(cluster.fabric.spawn, "api-main", API_CALLS, "API server", [JSON.stringify(start)]);
  await calls.watchCount();
  return { ...calls, url: `http://${host.includes(":") ? `[${host}]` : host}:${PORT}` };
}
