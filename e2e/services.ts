import type { IPFamily, Protocol } from "@turnout/core";
import { serviceManifest, sliceManifests } from "@turnout/lab";
import type { Cluster, ClusterApi, EndpointManifest, ServiceManifest } from "@turnout/lab";

/** A way to reach a service. A node port is asked for at a node. */
export type Way = "clusterIP" | "externalIP" | "loadBalancerIP" | `nodePort@${string}`;

/** The port of every service made here, for all its protocols. */
export const SERVICE_PORT = 80;

/** The port every pod serves TCP, UDP and (once asked to) SCTP on. */
export const SERVER_PORT = 8080;

/** What to make; addresses and node ports are given out, unless overridden in `fields`. */
export interface ServiceFixture {
  /** Names of places, or endpoints with conditions and hints. */
  readonly endpoints: readonly (string | EndpointFixture)[];
  /** Ways besides the cluster IP; default all of them. */
  readonly ways?: readonly ("externalIP" | "loadBalancerIP" | "nodePort")[];
  /** Default TCP and UDP. */
  readonly protocols?: readonly Protocol[];
  /** Where the endpoints listen; default {@link SERVER_PORT}. */
  readonly targetPort?: number;
  readonly fields?: Partial<ServiceManifest>;
}

/** An endpoint by the name of its place. */
export interface EndpointFixture extends Omit<EndpointManifest, "place"> {
  readonly on: string;
}

/** A Service with its slices on the API server. */
export interface TestService {
  readonly manifest: ServiceManifest;
  /** Where to send to. */
  target(way: Way, family: IPFamily): { readonly address: string; readonly port: number };
  /** Replace endpoints; in force when it resolves. */
  setEndpoints(endpoints: ServiceFixture["endpoints"]): Promise<void>;
  /** Change fields of the Service; in force when it resolves. */
  change(fields: Partial<ServiceManifest>): Promise<void>;
  /** Delete Service and slices; in force when it resolves. */
  remove(): Promise<void>;
}

/** Gives out services that don't get in each other's way. */
export interface Services {
  /** Make one and wait until it is in force. */
  create(fixture: ServiceFixture): Promise<TestService>;
  /** Make several, wait once. */
  createAll<Name extends string>(fixtures: Readonly<Record<Name, ServiceFixture>>): Promise<Readonly<Record<Name, TestService>>>;
}

/** Make the giver-out of services of one cluster. */
export function createServices(cluster: Cluster, api: ClusterApi, waitForSync: () => Promise<void>): Services {
  let count = 0;
  const write = async (fixture: ServiceFixture): Promise<TestService> => {
    count += 1;
    return await writeService({ cluster, api, waitForSync }, manifestFor(cluster, fixture, count), fixture.endpoints);
  };
  return {
    create: async (fixture) => {
      const service = await write(fixture);
      await waitForSync();
      return service;
    },
    createAll: async (fixtures) => {
      const made: [string, TestService][] = [];
      for (const [name, fixture] of Object.entries<ServiceFixture>(fixtures)) made.push([name, await write(fixture)]);
      await waitForSync();
      return Object.fromEntries(made) as Record<keyof typeof fixtures, TestService>;
    },
  };
}

function manifestFor(cluster: Cluster, fixture: ServiceFixture, number: number): ServiceManifest {
  const { ways = ["externalIP", "loadBalancerIP", "nodePort"], protocols = ["TCP", "UDP"], targetPort = SERVER_PORT } = fixture;
  const addresses = (v4: string, v6: string): string[] => cluster.families.map((family) => (family === "IPv4" ? v4 : v6));
  return {
    name: `service-${number}`,
    clusterIPs: addresses(`10.96.0.${number}`, `fd00:96::${number.toString(16)}`),
    ports: protocols.map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: SERVICE_PORT,
      targetPort,
      ...(ways.includes("nodePort") ? { nodePort: 30_000 + number } : {}),
    })),
    ...(ways.includes("externalIP") ? { externalIPs: addresses(`198.51.100.${number}`, `fd00:198::${number.toString(16)}`) } : {}),
    ...(ways.includes("loadBalancerIP")
      ? { ingress: addresses(`198.51.100.${100 + number}`, `fd00:198::${(100 + number).toString(16)}`).map((ip) => ({ ip })) }
      : {}),
    ...fixture.fields,
  };
}

interface Around {
  readonly cluster: Cluster;
  readonly api: ClusterApi;
  readonly waitForSync: () => Promise<void>;
}

async function writeService(
  { cluster, api, waitForSync }: Around,
  first: ServiceManifest,
  firstEndpoints: ServiceFixture["endpoints"],
): Promise<TestService> {
  let manifest = first;
  let endpoints = firstEndpoints;
  const slices = (): readonly unknown[] =>
    sliceManifests(
      manifest,
      endpoints.map((fixture) => endpointFor(cluster, fixture)),
      cluster.families,
    );
  const write = (): Promise<void> => api.apply([serviceManifest(manifest), ...slices()]);
  await write();
  return {
    get manifest() {
      return manifest;
    },
    target: (way, family) => targetOf(cluster, manifest, way, family),
    setEndpoints: async (next) => {
      endpoints = next;
      await api.apply(slices());
      await waitForSync();
    },
    change: async (fields) => {
      manifest = { ...manifest, ...fields };
      await write();
      await waitForSync();
    },
    remove: async () => {
      const namespace = manifest.namespace ?? "default";
      await api.delete({ kind: "Service", namespace, name: manifest.name });
      for (const family of cluster.families)
        await api.delete({ kind: "EndpointSlice", namespace, name: `${manifest.name}-${family.toLowerCase()}` });
      await waitForSync();
    },
  };
}

/** Write an endpoint at a place that is named. */
export function endpointFor(cluster: Pick<Cluster, "place">, fixture: string | EndpointFixture): EndpointManifest {
  if (typeof fixture === "string") return { place: cluster.place(fixture) };
  const { on, ...rest } = fixture;
  return { place: cluster.place(on), ...rest };
}

function targetOf(
  cluster: Cluster,
  manifest: ServiceManifest,
  way: Way,
  family: IPFamily,
): { readonly address: string; readonly port: number } {
  const isFamily = (ip: string): boolean => ip.includes(":") === (family === "IPv6");
  const [kind, node] = way.split("@");
  const nodePort = manifest.ports[0]?.nodePort;
  if (kind === "nodePort" && node !== undefined && nodePort !== undefined)
    return { address: cluster.place(node).address(family), port: nodePort };
  const candidates =
    kind === "clusterIP" ? manifest.clusterIPs : kind === "externalIP" ? manifest.externalIPs : manifest.ingress?.map(({ ip }) => ip);
  const address = candidates?.find(isFamily);
  if (address === undefined) throw new Error(`${manifest.name} has no ${way} of ${family}`);
  return { address, port: manifest.ports[0]?.port ?? SERVICE_PORT };
}
