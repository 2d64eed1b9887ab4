import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startClusterApi } from "./cluster-api.ts";
import type { ClusterApi } from "./cluster-api.ts";
import { createCluster } from "./cluster.ts";
import type { Cluster, ClusterOptions, Place } from "./cluster.ts";
import type { Transport } from "./agent/protocol.ts";

/** A cluster with an API server, and a folder for what runs on it. */
export interface Laboratory {
  readonly cluster: Cluster;
  readonly api: ClusterApi;
  /** Path of a kubeconfig: the way to the API server, as the nodes have it. */
  readonly kubeconfig: string;
  /** For sockets and files; it goes with the laboratory. */
  readonly folder: string;
  /** Name the place that has an address; an unknown address stays itself. */
  nameOf(address: string): string;
  destroy(): Promise<void>;
}

/**
 * Build a cluster and start an API server in it, which is empty: see `nodeManifests`. `prepare` runs while the API server starts.
 * @throws {ProxyError} what {@link createCluster} throws, or what `prepare` does; nothing is left then.
 */
export async function createLaboratory(
  options: ClusterOptions,
  prepare: (cluster: Cluster) => Promise<unknown> = () => Promise.resolve(),
): Promise<Laboratory> {
  const cluster = await createCluster(options);
  const folder = await mkdtemp(join(tmpdir(), "turnout-lab-"));
  const destroy = async (): Promise<void> => {
    cluster.destroy();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const [api] = await Promise.all([startClusterApi(cluster), prepare(cluster)]);
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, await api.kubeconfig());
    const places = [cluster.fabric, ...cluster.clients, ...cluster.nodes, ...cluster.nodes.flatMap((node) => node.pods)];
    const names = new Map(places.flatMap((place) => cluster.families.map((family) => [place.address(family), place.name])));
    const destroyAll = async (): Promise<void> => {
      api.close();
      await destroy();
    };
    return { cluster, api, kubeconfig, folder, nameOf: (address) => names.get(address) ?? address, destroy: destroyAll };
  } catch (error) {
    await destroy();
    throw error;
  }
}

/** Have places serve under their own names. */
export async function serveAt(places: readonly Place[], transports: readonly Transport[], ports: readonly number[]): Promise<void> {
  const serve = async (place: Place, transport: Transport, port: number): Promise<void> =>
    await place.agent().serve({ name: place.name, transport, port });
  await Promise.all(places.flatMap((place) => transports.flatMap((transport) => ports.map((port) => serve(place, transport, port)))));
}
