import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createLaboratory, nodeManifests, RANGES, serveAt, serviceManifest, sliceManifests } from "@turnout/lab";
import type { Cluster, NodePlace, TargetRequest } from "@turnout/lab";
import { followSyncs } from "../kube-proxy/sync-log.ts";
import { TURNOUT } from "../role-process.ts";
import { writeList, writeWorkload } from "../workload-files.ts";
import type { Shape } from "../workload.ts";

const NODE = "node1";
const SERVER_PORT = 8080;
const START_TIMEOUT_MS = 600_000;

/** The Service whose packets are looked at. */
export const WEB = { address: "10.111.0.1", port: 80, nodePort: 30_001 } as const;

/** One node with a real proxy and many Services, of which one has a real endpoint; a pod and a client outside ask it. */
export interface HealingStage {
  readonly cluster: Cluster;
  readonly node: NodePlace;
  /** Lines of the proxy's log so far. */
  readonly log: readonly LogLine[];
  /** Whether a pod by the cluster IP, and a client outside by the node port, both get an answer. */
  isServed(timeoutMs: number): Promise<boolean>;
  /** The proxy's process. */
  readonly proxy: ChildProcess;
  destroy(): Promise<void>;
}

/** One line of the proxy's log. */
export interface LogLine {
  readonly msg?: string;
  readonly what?: string;
  readonly family?: string;
  readonly [field: string]: unknown;
}

/** Build the stage and wait until all is in force. @throws {Error} what it failed with; nothing is left. */
export async function createHealingStage(flags: readonly string[], shape: Shape): Promise<HealingStage> {
  const laboratory = await createLaboratory(
    { nodes: [{ name: NODE, pods: 2 }], families: ["IPv4"], clients: 1, cgroups: flags.includes("ebpf") ? [NODE] : [] },
    (cluster) => serveAt([cluster.place("pod-1-2")], ["TCP"], [SERVER_PORT]),
  );
  const { cluster, folder } = laboratory;
  const [node, directory] = [cluster.node(NODE), join(folder, "objects")];
  let proxy: ChildProcess | undefined;
  const destroy = async (): Promise<void> => {
    if (proxy?.exitCode === null) {
      proxy.kill("SIGKILL");
      await once(proxy, "exit");
    }
    await laboratory.destroy();
  };
  try {
    await mkdir(directory);
    await writeSource(directory, cluster, shape);
    const source = ["--source", `file:${directory}`, "--node-name", NODE, "--cluster-cidr", RANGES.pods.IPv4];
    const ports = ["--healthz-bind-address", "", "--metrics-bind-address", "127.0.0.1:10249", "--keep-capabilities"];
    proxy = node.spawn(TURNOUT, ["run", ...flags, ...source, ...ports, "--logging-format", "json", "-v"], {
      stdio: ["ignore", "inherit", "pipe"],
    });
    const log: LogLine[] = [];
    await active(proxy, log);
    const isServed = (timeoutMs: number): Promise<boolean> => served(cluster, timeoutMs);
    return { cluster, node, log, proxy, isServed, destroy };
  } catch (error) {
    await destroy();
    throw error;
  }
}

async function writeSource(directory: string, cluster: Cluster, shape: Shape): Promise<void> {
  const web = {
    name: "web",
    clusterIPs: [WEB.address],
    ports: [{ name: "tcp", port: WEB.port, targetPort: SERVER_PORT, nodePort: WEB.nodePort }],
  };
  const own = [...nodeManifests(cluster), serviceManifest(web), ...sliceManifests(web, [{ place: cluster.place("pod-1-2") }], ["IPv4"])];
  await writeList(directory, "own", own);
  await writeWorkload(directory, shape);
}

async function active(proxy: ChildProcess, log: LogLine[]): Promise<void> {
  const syncs = followSyncs(proxy, (line, atMs) => {
    const parsed = line.startsWith("{") ? (JSON.parse(line) as LogLine) : { msg: line };
    log.push(parsed);
    return parsed.msg === "first sync done" && parsed.family === "IPv4" ? { family: parsed.family, elapsedMs: 0, atMs } : undefined;
  });
  // The log shows when it ends.
  const late = setTimeout(() => proxy.kill("SIGKILL"), START_TIMEOUT_MS);
  await syncs.next().finally(() => clearTimeout(late));
}

async function served(cluster: Cluster, timeoutMs: number): Promise<boolean> {
  const ask = async (place: string, target: Omit<TargetRequest, "timeoutMs">): Promise<boolean> =>
    (
      await cluster
        .place(place)
        .agent()
        .attempt({ ...target, timeoutMs })
    ).outcome === "ok";
  const answers = await Promise.all([
    ask("pod-1-1", { address: WEB.address, port: WEB.port }),
    ask("client1", { address: cluster.node(NODE).address("IPv4"), port: WEB.nodePort }),
  ]);
  return answers.every((isOk) => isOk);
}
