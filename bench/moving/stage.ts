import { readFileSync } from "node:fs";
import type { IPFamily } from "@turnout/core";
import { createLaboratory, nodeManifests, RANGES, serveAt, serviceManifest, sliceManifests } from "@turnout/lab";
import type { Cluster, ClusterApi, Laboratory, NodePlace, ServiceManifest, Transport } from "@turnout/lab";
import { parse } from "yaml";

/** For a proxy to serve a new Service, in a guest on a busy machine, too; it is over when the Service is served. */
const FOLLOW_MS = 600_000;

/** The node whose proxy changes. */
const NODE = "node1";
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** Servers listen on these ports in every pod. */
const SERVER_PORTS = [8080, 8081, 8082, 8083, 8084] as const;
/** The first of them. */
export const MAIN_PORT: number = SERVER_PORTS[0];

/** Who asks whom; in both families. */
export interface Source {
  readonly from: string;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly transport: Transport;
}

/** The Services, and who asks them: `moving.yaml`. */
const { services: SERVICES, sources } = parse(readFileSync(new URL("moving.yaml", import.meta.url), "utf8")) as {
  readonly services: readonly (ServiceManifest & { readonly endpoints: readonly string[] })[];
  readonly sources: readonly Source[];
};

/** Pods, the node itself and a client outside, by every kind of address. */
export const SOURCES: readonly Source[] = sources;

/** A cluster of two nodes with an API server and servers in every pod; the first node's proxy is what changes. */
export interface MovingStage extends Laboratory {
  readonly node: NodePlace;
  readonly clusterCIDR: string;
  /** Make one more Service, and wait until pods reach it: the proxy that serves now follows what changes. */
  follow(): Promise<void>;
}

/** Build the stage; `hasCgroups`: its node has a cgroup of its own, as eBPF needs. @throws {Error} what building it failed with; nothing is left. */
export async function createMovingStage(hasCgroups: boolean): Promise<MovingStage> {
  const nodes = [1, 2].map((node) => ({ name: `node${node}`, pods: 2 }));
  const laboratory = await createLaboratory({ nodes, clients: 1, cgroups: hasCgroups ? [NODE] : [] }, (cluster) =>
    serveAt(
      cluster.nodes.flatMap((node) => node.pods),
      ["TCP", "UDP"],
      SERVER_PORTS,
    ),
  );
  const { cluster, api } = laboratory;
  await api.apply(nodeManifests(cluster));
  for (const service of SERVICES) await applyService(cluster, api, service);
  const clusterCIDR = `${RANGES.pods.IPv4},${RANGES.pods.IPv6}`;
  return { ...laboratory, node: cluster.node(NODE), clusterCIDR, follow: () => follow(cluster, api) };
}

async function applyService(cluster: Cluster, api: ClusterApi, { endpoints, ...service }: (typeof SERVICES)[number]): Promise<void> {
  const places = endpoints.map((name) => ({ place: cluster.place(name) }));
  await api.apply([serviceManifest(service), ...sliceManifests(service, places, FAMILIES)]);
}

async function follow(cluster: Cluster, api: ClusterApi): Promise<void> {
  const clusterIPs = ["10.96.0.9", "fd00:96::9"];
  await applyService(cluster, api, {
    name: "new",
    clusterIPs,
    ports: [{ name: "tcp", port: 80, targetPort: MAIN_PORT }],
    endpoints: ["pod-2-2"],
  });
  for (const address of clusterIPs) {
    const ask = (): Promise<boolean> =>
      cluster
        .place("pod-1-1")
        .agent()
        .attempt({ address, port: 80, timeoutMs: 500 })
        .then(({ outcome }) => outcome === "ok");
    const untilMs = performance.now() + FOLLOW_MS;
    while (!(await ask())) if (performance.now() > untilMs) throw new Error(`the new proxy doesn't serve a new Service at ${address}`);
  }
}
