import { ProxyError, type Clock, type IPFamily } from "@turnout/core";
import {
  createLaboratory,
  nodeManifests,
  RANGES,
  serviceCIDRManifest,
  serviceManifest,
  sliceManifests,
  type Cluster,
  type ClusterApi,
  type EndpointManifest,
} from "@turnout/lab";
import { startProxy, type DemoProxy } from "./proxy.ts";
import { HTTP_SERVER_PORT, NODES, SHOP, type Replica, type ShopService } from "./shop.ts";

/** What the stage is built with. */
export interface StageOptions {
  readonly backend: string;
  readonly families: readonly IPFamily[];
  readonly clock: Clock;
  /** A steady clock with fractions, in ms. */
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
}

/** An endpoint of the shop; conditions as in an EndpointSlice. */
export interface ShopEndpoint extends Omit<EndpointManifest, "place"> {
  readonly replica: Replica;
}

/** The running shop: cluster, API server, servers, and (once started) a proxy on every node. */
export interface Stage {
  readonly cluster: Cluster;
  readonly api: ClusterApi;
  readonly families: readonly IPFamily[];
  readonly proxies: readonly DemoProxy[];
  readonly kubeconfig: string;
  /** Tell the API server who serves a service now. */
  setEndpoints(service: ShopService, endpoints: readonly ShopEndpoint[]): Promise<void>;
  /** Start the real command on every node; does not wait for it. */
  startProxies(): void;
  /** Name the place that has an address; an unknown address stays itself. */
  nameOf(address: string): string;
  /** Wait. @throws {ProxyError} `canceled` on abort. */
  pause(ms: number): Promise<void>;
  nowMs(): number;
  destroy(): Promise<void>;
}

/**
 * Build the shop: namespaces, API server with its objects, and every server; no proxy yet.
 * @throws {ProxyError} what {@link createCluster} throws; nothing is left then.
 */
export async function buildStage(options: StageOptions): Promise<Stage> {
  const { families, signal } = options;
  const { cluster, api, kubeconfig, nameOf, destroy } = await createLaboratory(
    { nodes: NODES, families, clients: 1, signal },
    startServers,
  );
  const proxies: DemoProxy[] = [];
  try {
    const setEndpoints = (service: ShopService, endpoints: readonly ShopEndpoint[]): Promise<void> =>
      api.apply(slicesOf(cluster, service, endpoints));
    await api.apply([...nodeManifests(cluster), serviceCIDRManifest(families.map((family) => RANGES.services[family]))]);
    for (const service of Object.values(SHOP)) {
      await api.apply([serviceManifest(inFamilies(service.manifest, families))]);
      await setEndpoints(service, firstEndpoints(service));
    }
    return {
      cluster,
      api,
      families,
      proxies,
      kubeconfig,
      setEndpoints,
      startProxies: () => {
        const clusterCIDR = families.map((family) => RANGES.pods[family]).join(",");
        const flags = ["--backend", options.backend, "--kubeconfig", kubeconfig, "--cluster-cidr", clusterCIDR];
        proxies.push(...cluster.nodes.map((node) => startProxy(node, flags)));
      },
      nameOf,
      pause: async (ms) => {
        await options.clock.sleep(ms, signal);
        if (signal.aborted) throw new ProxyError("canceled", "the demo was stopped");
      },
      nowMs: options.nowMs,
      destroy,
    };
  } catch (error) {
    await destroy();
    throw error;
  }
}

/** The endpoints a service starts with. */
export function firstEndpoints(service: ShopService): readonly ShopEndpoint[] {
  return service.replicas.slice(0, service.startWith).map((replica) => ({ replica }));
}

/** A cluster of one family has services of that family. */
function inFamilies(manifest: ShopService["manifest"], families: readonly IPFamily[]): ShopService["manifest"] {
  const isServed = (ip: string): boolean => families.includes(ip.includes(":") ? "IPv6" : "IPv4");
  const { ingress } = manifest;
  return {
    ...manifest,
    clusterIPs: manifest.clusterIPs.filter(isServed),
    ...(ingress === undefined ? {} : { ingress: ingress.filter(({ ip }) => isServed(ip)) }),
  };
}

function slicesOf(cluster: Cluster, service: ShopService, endpoints: readonly ShopEndpoint[]): readonly unknown[] {
  const manifests = endpoints.map(({ replica, ...rest }): EndpointManifest => ({ place: cluster.place(replica.pod), ...rest }));
  return sliceManifests(service.manifest, manifests, cluster.families);
}

async function startServers(cluster: Cluster): Promise<void> {
  const starts = Object.values(SHOP).flatMap(({ replicas, protocol, serverPort }) =>
    replicas.map(({ name, pod }) => cluster.place(pod).agent().serve({ name, transport: protocol, port: serverPort })),
  );
  const http = SHOP.frontend.replicas.map(({ name, pod }) =>
    cluster.place(pod).agent().serve({ name, transport: "HTTP", port: HTTP_SERVER_PORT }),
  );
  await Promise.all([...starts, ...http]);
}
