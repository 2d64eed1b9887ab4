import { createLaboratory, nodeManifests, RANGES, serveAt, serviceCIDRManifest } from "@turnout/lab";
import type { Cluster, ClusterApi, ClusterShape, Laboratory, Place } from "@turnout/lab";
import { createBarrier } from "./barrier.ts";
import { defaultLayout } from "./layout.ts";
import type { Layout } from "./layout.ts";
import { createInterceptor } from "./interceptor.ts";
import type { Interceptor } from "./interceptor.ts";
import { startProxy } from "./proxy.ts";
import type { Proxy } from "./proxy.ts";
import { createServices, SERVER_PORT } from "./services.ts";
import type { Services } from "./services.ts";

/** The port every pod serves HTTP on. */
export const HTTP_PORT = 8081;
/** The server every node runs as a host-network pod listens here. */
export const HOST_PORT = 8082;

/** Flags that tell pods by their addresses, the usual way. */
export const CLUSTER_CIDR: readonly string[] = ["--cluster-cidr", `${RANGES.pods.IPv4},${RANGES.pods.IPv6}`];

const NODES = ["a", "b"].map((zone, index) => ({ name: `node${index + 1}`, zone: `zone-${zone}`, pods: 3 }));

/** What a site is made of; two nodes with three pods each and one client unless said otherwise. */
export interface SiteOptions extends Partial<ClusterShape> {
  /** Flags of the proxy beyond those that every scenario needs; default {@link CLUSTER_CIDR}. */
  readonly flags?: readonly string[];
  /** Nodes that run the proxy; default all. */
  readonly proxied?: readonly string[];
  /** How the proxies are made of processes; default what the environment says. */
  readonly layout?: Layout;
  /** Have a {@link Meddler} between each node-state server and its backend. */
  readonly isMeddled?: boolean;
  /** Nodes that have a cgroup and a bpffs of their own; default none. */
  readonly cgroups?: readonly string[];
  /** A sync comes into force in parts, so the barrier may be passed in the middle of one. A second time it is passed after its end. */
  readonly isInParts?: boolean;
}

/** A cluster with an API server, servers in every pod, and the real proxy on every node. */
export interface Site {
  readonly cluster: Cluster;
  readonly api: ClusterApi;
  readonly services: Services;
  /** The way to the API server, as the nodes have it. */
  readonly kubeconfig: string;
  readonly proxies: readonly Proxy[];
  proxy(node: string): Proxy;
  /** Who stands between a node's node-state server and its backend. */
  interceptor(node: string): Interceptor;
  place(name: string): Place;
  /** Wait until every proxy has in force what the API server was told before, both families. */
  waitForSync(): Promise<void>;
  /** Name the place that has an address, so that expectations read the same in both families. */
  nameOf(address: string): string;
  destroy(): Promise<void>;
}

/**
 * Build a site and wait until it works.
 *
 * Shape: every pod serves TCP and UDP on {@link SERVER_PORT} and HTTP on {@link HTTP_PORT} under its own name, every node TCP and UDP
 * on {@link HOST_PORT}; the fabric sends external addresses, and clients' packets for service addresses, to the first node.
 */
export async function createSite(options: SiteOptions = {}): Promise<Site> {
  const { clients = 1, cgroups = [], families = ["IPv4", "IPv6"], nodes = NODES } = options;
  const laboratory = await createLaboratory({ nodes, families, clients, cgroups }, (cluster) =>
    Promise.all([startServers(cluster), routeServices(cluster)]),
  );
  try {
    return await assemble(laboratory, options);
  } catch (error) {
    await laboratory.destroy();
    throw error;
  }
}

async function assemble(laboratory: Laboratory, options: SiteOptions): Promise<Site> {
  const { cluster, api, kubeconfig, folder, nameOf } = laboratory;
  await api.apply([...nodeManifests(cluster), serviceCIDRManifest(cluster.families.map((family) => RANGES.services[family]))]);
  const proxied = cluster.nodes.filter((node) => options.proxied?.includes(node.name) ?? true);
  const { layout = defaultLayout(), flags = CLUSTER_CIDR, isMeddled: isApart = false } = options;
  const proxies = proxied.map((node) => startProxy(node, { layout, kubeconfig, folder, flags, isApart }));
  const meddled = isApart ? proxies : [];
  const interceptors = new Map(
    await Promise.all(
      meddled.map(async ({ node, socket, stateSocket }) => [node.name, await createInterceptor(socket, stateSocket)] as const),
    ),
  );
  const passBarrier = createBarrier(cluster, api, proxies);
  const waitForSync = async (): Promise<void> => {
    await passBarrier();
    if (options.isInParts === true) await passBarrier();
  };
  await waitForSync();
  const found = <T>(one: T | undefined, what: string): T => {
    if (one === undefined) throw new Error(what);
    return one;
  };
  return {
    cluster,
    api,
    services: createServices(cluster, api, waitForSync),
    kubeconfig,
    proxies,
    proxy: (name) =>
      found(
        proxies.find((candidate) => candidate.node.name === name),
        `no proxy on ${name}`,
      ),
    interceptor: (name) => found(interceptors.get(name), `nobody meddles on ${name}`),
    place: cluster.place,
    waitForSync,
    nameOf,
    destroy: async () => {
      api.close();
      await Promise.all(proxies.map((proxy) => proxy.remove()));
      await Promise.all([...interceptors.values()].map((interceptor) => interceptor.close()));
      await laboratory.destroy();
    },
  };
}

async function startServers(cluster: Cluster): Promise<void> {
  const pods = cluster.nodes.flatMap((node) => node.pods);
  await Promise.all([
    serveAt(pods, ["TCP", "UDP"], [SERVER_PORT]),
    serveAt(pods, ["HTTP"], [HTTP_PORT]),
    serveAt(cluster.nodes, ["TCP", "UDP"], [HOST_PORT]),
  ]);
}

/**
 * Outside clients reach cluster IPs through the first node, so that what happens to them can be seen. Nobody else does: a packet that
 * a node should have translated must not be rescued by another.
 */
async function routeServices(cluster: Cluster): Promise<void> {
  for (const family of cluster.families) {
    const gateway = cluster.nodes[0]?.address(family) ?? "";
    const ip = family === "IPv4" ? "-4" : "-6";
    await cluster.fabric.run("ip", [ip, "rule", "add", "from", RANGES.clients[family], "to", RANGES.services[family], "lookup", "96"]);
    await cluster.fabric.run("ip", [ip, "route", "add", RANGES.services[family], "via", gateway, "table", "96"]);
  }
}
