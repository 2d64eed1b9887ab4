import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { IPFamily } from "@turnout/core";
import { createCluster, nodeManifests, RANGES, serviceManifest, sliceManifests, startClusterApi } from "@turnout/lab";
import type { Cluster, ClusterApi, NodePlace, ServiceManifest, Transport } from "@turnout/lab";

/** For a proxy to serve a new Service, in a guest on a busy machine, too; it is over when the Service is served. */
const FOLLOW_MS = 600_000;

/** The node whose proxy changes. */
const NODE = "node1";
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** Servers listen on these ports in every pod. */
const SERVER_PORTS = [8080, 8081, 8082, 8083, 8084] as const;
const [, ...OTHER_PORTS] = SERVER_PORTS;
/** The first of them. */
export const MAIN_PORT: number = SERVER_PORTS[0];

const both = (v4: string, v6: string): readonly string[] => [v4, v6];

/**
 * Two addresses that one client asks lead to different ports of the pods: IPVS tells answers apart by client and endpoint alone, so a client that
 * uses one port of its own towards both would lose a connection whoever is the proxy (docs/backends/ipvs.md, "One client port, two addresses").
 */
const SERVICES: readonly (ServiceManifest & { readonly endpoints: readonly string[] })[] = [
  {
    name: "web",
    clusterIPs: both("10.96.0.1", "fd00:96::1"),
    ports: [
      { name: "main", port: 80, targetPort: MAIN_PORT },
      { name: "other", port: 81, targetPort: OTHER_PORTS[0], nodePort: 30_001 },
    ],
    externalIPs: both("198.51.100.1", "fd00:198::1"),
    ingress: both("198.51.100.11", "fd00:198::11").map((ip) => ({ ip })),
    endpoints: ["pod-1-2", "pod-2-1"],
  },
  {
    name: "local",
    clusterIPs: both("10.96.0.2", "fd00:96::2"),
    ports: [
      { name: "main", port: 80, targetPort: OTHER_PORTS[1] },
      { name: "other", port: 81, targetPort: OTHER_PORTS[2], nodePort: 30_002 },
    ],
    ingress: both("198.51.100.12", "fd00:198::12").map((ip) => ({ ip })),
    sourceRanges: [RANGES.clients.IPv4, RANGES.clients.IPv6],
    externalTrafficPolicy: "Local",
    healthCheckNodePort: 32_002,
    endpoints: ["pod-1-2", "pod-2-1"],
  },
  {
    name: "sticky",
    clusterIPs: both("10.96.0.3", "fd00:96::3"),
    ports: [{ name: "tcp", port: 80, targetPort: OTHER_PORTS[3] }],
    affinitySeconds: 600,
    endpoints: ["pod-1-2", "pod-2-1", "pod-2-2"],
  },
  {
    name: "dns",
    clusterIPs: both("10.96.0.4", "fd00:96::4"),
    ports: [{ name: "udp", protocol: "UDP", port: 53, targetPort: MAIN_PORT, nodePort: 30_004 }],
    endpoints: ["pod-1-2", "pod-2-1"],
  },
];

/** Who asks whom; in both families. */
export interface Source {
  readonly from: string;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly transport: Transport;
}

/** Pods, the node itself and a client outside, by every kind of address. */
export const SOURCES: readonly Source[] = [
  { from: "pod-1-1", addresses: both("10.96.0.1", "fd00:96::1"), port: 80, transport: "TCP" },
  { from: NODE, addresses: both("10.96.0.1", "fd00:96::1"), port: 80, transport: "TCP" },
  { from: "client1", addresses: both("172.18.0.1", "fd00:18::1"), port: 30_001, transport: "TCP" },
  { from: "client1", addresses: both("198.51.100.1", "fd00:198::1"), port: 80, transport: "TCP" },
  { from: "client1", addresses: both("198.51.100.12", "fd00:198::12"), port: 80, transport: "TCP" },
  { from: "client1", addresses: both("172.18.0.1", "fd00:18::1"), port: 30_002, transport: "TCP" },
  { from: "pod-1-1", addresses: both("198.51.100.11", "fd00:198::11"), port: 81, transport: "TCP" },
  { from: "pod-1-1", addresses: both("10.96.0.3", "fd00:96::3"), port: 80, transport: "TCP" },
  { from: "pod-1-1", addresses: both("10.96.0.4", "fd00:96::4"), port: 53, transport: "UDP" },
  { from: "client1", addresses: both("172.18.0.1", "fd00:18::1"), port: 30_004, transport: "UDP" },
];

/** A cluster of two nodes with an API server and servers in every pod; the first node's proxy is what changes. */
export interface MovingStage {
  readonly cluster: Cluster;
  readonly node: NodePlace;
  readonly directory: string;
  readonly kubeconfig: string;
  readonly clusterCIDR: string;
  /** Make one more Service, and wait until pods reach it: the proxy that serves now follows what changes. */
  follow(): Promise<void>;
  destroy(): Promise<void>;
}

/** Build the stage; `hasCgroups`: its node has a cgroup of its own, as eBPF needs. @throws {Error} what building it failed with; nothing is left. */
export async function createMovingStage(hasCgroups: boolean): Promise<MovingStage> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-moving-"));
  const cluster = await createCluster({
    nodes: [1, 2].map((node) => ({ name: `node${node}`, pods: 2 })),
    clients: 1,
    cgroups: hasCgroups ? [NODE] : [],
  });
  const destroy = async (): Promise<void> => {
    cluster.destroy();
    await rm(directory, { recursive: true });
  };
  try {
    const [api] = await Promise.all([startClusterApi(cluster), startServers(cluster)]);
    await api.apply(nodeManifests(cluster));
    for (const service of SERVICES) await applyService(cluster, api, service);
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, await api.kubeconfig());
    const clusterCIDR = `${RANGES.pods.IPv4},${RANGES.pods.IPv6}`;
    return { cluster, node: cluster.node(NODE), directory, kubeconfig, clusterCIDR, follow: () => follow(cluster, api), destroy };
  } catch (error) {
    await destroy();
    throw error;
  }
}

async function startServers(cluster: Cluster): Promise<void> {
  const pods = cluster.nodes.flatMap((node) => node.pods);
  await Promise.all(
    pods.flatMap((pod) =>
      (["TCP", "UDP"] as const).flatMap((transport) => SERVER_PORTS.map((port) => pod.agent().serve({ name: pod.name, transport, port }))),
    ),
  );
}

async function applyService(cluster: Cluster, api: ClusterApi, { endpoints, ...service }: (typeof SERVICES)[number]): Promise<void> {
  const places = endpoints.map((name) => ({ place: cluster.place(name) }));
  await api.apply([serviceManifest(service), ...sliceManifests(service, places, FAMILIES)]);
}

async function follow(cluster: Cluster, api: ClusterApi): Promise<void> {
  const clusterIPs = both("10.96.0.9", "fd00:96::9");
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
