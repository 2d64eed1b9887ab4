import type { NodeSettings } from "@turnout/core";
import { placeNameOf, STAGE_NODE, STAGE_OBJECTS, STAGE_SETTINGS, UPLINK } from "@turnout/conformance";
import type { Listener, Scenario } from "@turnout/conformance";
import { routeByFirstNode } from "@turnout/lab";
import { createStageServers, nameAt } from "./conformance-servers.ts";
import type { StageServers } from "./conformance-servers.ts";
import { defaultLayout } from "./layout.ts";
import type { Layout } from "./layout.ts";
import { settingsFlags } from "./conformance-settings.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

/** Source ports below those that the kernel gives out by itself, and above those where the proxies listen. */
const PORTS = { first: 13_000, last: 29_999 } as const;

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
  readonly servers: StageServers;
  /** Have whoever owns an address answer there himself: what the proxy leaves alone is answered. */
  answer(asker: string, listener: Listener): Promise<void>;
  /** Under what name whoever has an address answers there; "" when nobody has it. */
  ownerName(address: string, port: number): string;
  /** The proxy's process ends without warning, and a new one starts. */
  restartProxy(): Promise<void>;
  /** The proxy is stopped, and one with the flags of another dataplane starts; without them one with the stage's own. */
  replaceProxy(flags?: readonly string[]): Promise<void>;
  /** What a place asks over UDP is decided at its socket, and conntrack knows nothing of it. */
  servesSocketOf(place: string): boolean;
  /** A source port that this place has not used for a long time. */
  nextPort(place: string): number;
}

/** What a stage must know of the dataplane that plays on it. */
export interface Dataplane {
  /** Flags of `turnout run` that choose and set it up. */
  readonly flags: readonly string[];
  /** As {@link SiteOptions.isInParts}. */
  readonly isInParts?: boolean;
  /** How the proxy is made of processes; default what the environment says. */
  readonly layout?: Layout;
  /** It serves sockets of processes in a cgroup: the node has one of its own, with its pods. */
  readonly servesCgroup?: boolean;
}

/** The proxy's flags for settings and a dataplane; without one for the stage's own. */
type FlagsFor = (settings: NodeSettings, dataplane?: readonly string[]) => readonly string[];

/** Build the stage. */
export async function createRealStage(dataplane: Dataplane): Promise<RealStage> {
  // Steps follow each other faster than changes of a cluster; every one is waited for.
  const pace = ["--iptables-min-sync-period", "10ms"];
  const flagsFor: FlagsFor = (settings, flags = dataplane.flags) => [...settingsFlags(settings), ...pace, ...flags];
  const { isInParts = false, servesCgroup = false, layout = defaultLayout() } = dataplane;
  const proxied = [STAGE_NODE];
  const cgroups = servesCgroup ? proxied : [];
  const site = await createSite({ clients: 2, proxied, flags: flagsFor(STAGE_SETTINGS), isInParts, layout, cgroups });
  try {
    await routeByFirstNode(site.cluster);
    // The kernel itself forgets flows of UDP after 30 s: none that a scenario has forgotten may go in that way while it is waited for.
    await site.cluster.node(STAGE_NODE).run("sysctl", ["-qew", "net.netfilter.nf_conntrack_udp_timeout=600"]);
    await site.api.apply(STAGE_OBJECTS);
    return stageOn(site, { flagsFor, servesCgroup, servers: await createStageServers(site) });
  } catch (error) {
    await site.destroy();
    throw error;
  }
}

/** What a stage is made with. */
interface StageTools {
  readonly flagsFor: FlagsFor;
  readonly servesCgroup: boolean;
  readonly servers: StageServers;
}

function stageOn(site: Site, { flagsFor, servesCgroup, servers }: StageTools): RealStage {
  const proxy = site.proxy(STAGE_NODE);
  const ports = new Map<string, number>();
  let running = JSON.stringify(STAGE_SETTINGS);
  const addresses = new Set<string>();
  const bind = async (address: string): Promise<void> => {
    if (addresses.has(address) || placeNameOf(address) === STAGE_NODE) return;
    addresses.add(address);
    await changeAddress(site, "add", address);
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
      // A Service that goes and comes again within one sync was never gone.
      if (wasAffine) await site.waitForSync();
      await Promise.all([site.api.apply(STAGE_OBJECTS), servers.rest()]);
      for (const address of addresses) await changeAddress(site, "del", address);
      addresses.clear();
    },
    bind,
    servers,
    answer: async (asker, listener) => {
      const { address } = listener;
      const owner = ownerOf(address);
      if (owner === "") return;
      await servers.serve(LOOPBACK.has(address) ? asker : owner === address ? STAGE_NODE : owner, listener);
    },
    ownerName: (address, port) => (ownerOf(address) === "" ? "" : nameAt(address, port)),
    restartProxy: async () => {
      if (proxy.isRunning) await proxy.end("SIGKILL");
      proxy.start();
    },
    replaceProxy: async (flags) => {
      if (proxy.isRunning) await proxy.end("SIGTERM");
      proxy.start(flagsFor(STAGE_SETTINGS, flags));
      running = JSON.stringify(STAGE_SETTINGS);
    },
    servesSocketOf: (place) => servesCgroup && site.place(place).node === STAGE_NODE,
    nextPort: (place) => {
      const port = ports.get(place) ?? PORTS.first;
      ports.set(place, port === PORTS.last ? PORTS.first : port + 1);
      return port;
    },
  };
}

/** Give node1 an address, or take it away; the fabric knows the way there. */
async function changeAddress(site: Site, how: "add" | "del", address: string): Promise<void> {
  const isSix = address.includes(":");
  // Deprecated, so that what is masqueraded still gets the address the node had before.
  const quietly = isSix && how === "add" ? ["nodad", "preferred_lft", "0"] : [];
  await site.cluster.node(STAGE_NODE).run("ip", ["address", how, `${address}/${isSix ? 128 : 32}`, "dev", UPLINK, ...quietly]);
  await site.cluster.routeTo(address, STAGE_NODE);
}
