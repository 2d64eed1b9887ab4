import type { NodeSettings, Protocol } from "@turnout/core";
import { placeNameOf, serverName, STAGE_NODE, STAGE_OBJECTS, STAGE_SETTINGS, UPLINK } from "@turnout/core/testing";
import type { Scenario } from "@turnout/core/testing";
import { routeByFirstNode } from "./conformance-routes.ts";
import type { Place } from "@turnout/lab";
import { settingsFlags } from "./conformance-settings.ts";
import type { Listener } from "./conformance-objects.ts";
import { SERVER_PORT } from "./services.ts";
import { createSite, HTTP_PORT } from "./site.ts";
import type { Site } from "./site.ts";

/** Source ports below those that the kernel gives out by itself. */
const PORTS = { first: 11_000, last: 29_999 } as const;

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1"]);

/** The kit's stage with real packets on it: one cluster, the real proxy on node1, and one scenario at a time. */
export interface RealStage {
  readonly site: Site;
  /** Have node1 as a scenario wants it: the proxy's settings, addresses of its own. */
  prepare(scenario: Scenario): Promise<void>;
  /** Undo what {@link RealStage.prepare} and the scenario did to the node and the stage's own objects; `wasAffine`: clients were remembered. */
  restore(wasAffine: boolean): Promise<void>;
  /** Have node1 own an address it sends from, until {@link RealStage.restore}. */
  bind(address: string): Promise<void>;
  /** Have servers wherever an endpoint says there is one, under the names that the kit's words have for them. */
  listen(listeners: readonly Listener[]): Promise<void>;
  /** Have whoever owns an address answer there himself, under {@link RealStage.ownerOf}'s name: what the proxy leaves alone is answered. */
  answer(asker: string, listener: Listener): Promise<void>;
  /** Name who owns an address: a place's name, or the address itself for loopback and node1's further ones; "" for nobody. */
  ownerOf(address: string): string;
  /** The proxy's process ends without warning, and a new one starts. */
  restartProxy(): Promise<void>;
  /** A source port that this place has not used for a long time. */
  nextPort(place: string): number;
}

/** What a stage must know of the dataplane that plays on it. */
export interface Dataplane {
  /** Flags of `turnout run` that choose and set it up. */
  readonly flags: readonly string[];
  /** Have it forget where affine clients went, where it remembers that beyond the life of their Service. */
  forgetClients?(node: Place): Promise<void>;
}

/** Build the stage. */
export async function createRealStage(dataplane: Dataplane): Promise<RealStage> {
  const flagsFor = (settings: NodeSettings): readonly string[] => [...settingsFlags(settings), ...dataplane.flags];
  const site = await createSite({ clients: 2, proxied: [STAGE_NODE], flags: flagsFor(STAGE_SETTINGS) });
  try {
    await Promise.all([routeByFirstNode(site.cluster), stopSpareServers(site)]);
    await site.api.apply(STAGE_OBJECTS);
  } catch (error) {
    await site.destroy();
    throw error;
  }
  const proxy = site.proxy(STAGE_NODE);
  const ports = new Map<string, number>();
  const listening = new Set(podListeners(site));
  let running = JSON.stringify(STAGE_SETTINGS);
  const addresses = new Set<string>();
  const bind = async (address: string): Promise<void> => {
    if (addresses.has(address) || placeNameOf(address) === STAGE_NODE) return;
    addresses.add(address);
    await changeAddress(site, "add", address);
  };
  const serve = async (on: string, name: string, { port, protocol }: Listener, address?: string): Promise<void> => {
    const keys = [`${on} ${protocol} ${port}`, `${on} ${protocol} ${port} ${address ?? ""}`];
    if (keys.some((key) => listening.has(key))) return;
    listening.add(keys[address === undefined ? 0 : 1] ?? "");
    await site
      .place(on)
      .agent()
      .serve({ name, transport: protocol, port, ...(address === undefined ? {} : { address }) });
  };
  const ownerOf = (address: string): string =>
    LOOPBACK.has(address) || addresses.has(address) || placeNameOf(address) !== address ? placeNameOf(address) : "";
  return {
    site,
    prepare: async ({ settings, hostAddresses }) => {
      for (const address of [...(hostAddresses?.IPv4 ?? []), ...(hostAddresses?.IPv6 ?? [])]) await bind(address);
      const wanted: NodeSettings = { ...STAGE_SETTINGS, ...settings };
      if (running === JSON.stringify(wanted) && proxy.isRunning) return;
      if (proxy.isRunning) await proxy.end("SIGKILL");
      proxy.start(flagsFor(wanted));
      running = JSON.stringify(wanted);
    },
    restore: async (wasAffine) => {
      if (wasAffine) await dataplane.forgetClients?.(site.place(STAGE_NODE));
      await site.api.apply(STAGE_OBJECTS);
      for (const address of addresses) await changeAddress(site, "del", address);
      addresses.clear();
    },
    bind,
    listen: async (listeners) => {
      for (const listener of listeners) {
        const { address, port } = listener;
        const place = placeNameOf(address);
        const endpoint = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
        if (place !== address) await serve(place, serverName(endpoint), listener);
      }
    },
    answer: async (asker, listener) => {
      const { address } = listener;
      const owner = ownerOf(address);
      // Bound to the one address: a datagram's answer must come from where the question went.
      if (owner === address) await serve(LOOPBACK.has(address) ? asker : STAGE_NODE, owner, listener, address);
      else if (owner !== "") await serve(owner, owner, listener, address);
    },
    ownerOf,
    restartProxy: async () => {
      if (proxy.isRunning) await proxy.end("SIGKILL");
      proxy.start();
    },
    nextPort: (place) => {
      const port = ports.get(place) ?? PORTS.first;
      ports.set(place, port === PORTS.last ? PORTS.first : port + 1);
      return port;
    },
  };
}

/** An endpoint may have any port: only the barrier's stays taken. */
async function stopSpareServers(site: Site): Promise<void> {
  const pods = site.cluster.nodes.flatMap((node) => node.pods);
  await Promise.all(pods.map((pod) => pod.agent().stop({ transport: "HTTP", port: HTTP_PORT, how: "drain" })));
}

/** What every site's pods serve from the start. */
function podListeners(site: Site): readonly string[] {
  const protocols: readonly Protocol[] = ["TCP", "UDP"];
  return site.cluster.nodes.flatMap((node) =>
    node.pods.flatMap((pod) => protocols.map((protocol) => `${pod.name} ${protocol} ${SERVER_PORT}`)),
  );
}

/** Give node1 an address, or take it away; the fabric knows the way there. */
async function changeAddress(site: Site, how: "add" | "del", address: string): Promise<void> {
  const isSix = address.includes(":");
  // Deprecated, so that what is masqueraded still gets the address the node had before.
  const quietly = isSix && how === "add" ? ["nodad", "preferred_lft", "0"] : [];
  await site.cluster.node(STAGE_NODE).run("ip", ["address", how, `${address}/${isSix ? 128 : 32}`, "dev", UPLINK, ...quietly]);
  await site.cluster.routeTo(address, STAGE_NODE);
}
