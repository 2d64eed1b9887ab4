import { ALL_CAPABILITIES, defineBackend, objectId } from "@turnout/core/backend";
import type { Backend, BackendModule, Counts, IPFamily, Leftover, CountName } from "@turnout/core/backend";
import { createLinuxWorld, OwnCommits } from "@turnout/host";
import type { CommitMark, LinuxWorld, Netlink, NftElement, NftTableSink } from "@turnout/host";
import { dropNftTable, NftSession } from "@turnout/host/nft";
import { Applier } from "./apply.ts";
import { describeObject } from "./describe.ts";
import { lookupObjects } from "./lookup.ts";
import { NFT_FAMILY, TABLE } from "./names.ts";
import { LOOPBACK_QUESTION, loopbackMetrics, nftMetrics } from "./metrics.ts";
import { keepEndpointPlaces } from "./objects.ts";
import type { NftObject } from "./objects.ts";
import { TableObjects } from "./observe.ts";
import { NFT_OPTIONS } from "./options.ts";
import type { NftFacts, NftOptions } from "./options.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Transaction } from "./plan.ts";
import { probeNft, readFacts } from "./probe.ts";
import { renderRow } from "./render.ts";
import { NODE_PORT_ADDRESSES, renderSkeleton, waysIn } from "./skeleton.ts";
import { watchHost } from "./watch.ts";
import { COUNT_SETS } from "./count-sets.ts";
import type { CountSet } from "./count-sets.ts";

/** Takes what the sets of a table counted, and nothing else of it. */
class CountedSets implements NftTableSink {
  /** By set and key: a set that packets write to while it is read may tell of an element twice. */
  readonly #elements = new Map<CountSet, Map<string, NftElement>>();

  set(name: string): ((element: NftElement) => void) | undefined {
    if (!(name in COUNT_SETS)) return undefined;
    const elements = new Map<string, NftElement>();
    this.#elements.set(name as CountSet, elements);
    return (element) => void elements.set(element.key, element);
  }

  chain(): void {
    // Nothing is counted there.
  }

  /**
   * What was counted for each destination, by its object.
   *
   * Shape: `isKnown` tells whether there is an object of an identity: what came for no address of a Service came for a node port.
   */
  counts(isKnown: (object: string) => boolean): ReadonlyMap<string, Counts> {
    const found = new Map<string, Partial<Record<CountName, number>>>();
    for (const [set, elements] of this.#elements) {
      const { count, unit } = COUNT_SETS[set];
      for (const { key, counter } of elements.values()) {
        const service = objectId({ kind: "service", key, value: "" });
        const port = key.slice(key.indexOf(" . ") + 3);
        const id = isKnown(service) ? service : objectId({ kind: "nodeport", key: port, value: "" });
        // Of a destination that is gone; it is forgotten after a day.
        if (!isKnown(id)) continue;
        const counts = found.get(id) ?? {};
        // A node port is asked for at several addresses.
        counts[count] = (counts[count] ?? 0) + (counter?.[unit] ?? 0);
        found.set(id, counts);
      }
    }
    return found;
  }
}

/** The table of kube-proxy's nftables mode. Its rules are not ours to adopt: they go once ours are in force. */
const KUBE_PROXY_TABLE = "kube-proxy";

/** Find the tables that proxies which are not in use left. @throws {ProxyError} what asking the kernel fails with. */
async function findLeftovers(
  host: { readonly own: OwnCommits; readonly netlink: Pick<Netlink, "hasNftTable" | "deleteNftTable"> },
  family: "ip" | "ip6",
  isInUse: boolean,
): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  for (const name of isInUse ? [KUBE_PROXY_TABLE] : [TABLE, KUBE_PROXY_TABLE]) {
    if (!(await host.netlink.hasNftTable(family, name))) continue;
    const remove = (): Promise<void> => dropNftTable(host, family, name);
    found.push({ what: `table ${family} ${name}`, by: name === TABLE ? "turnout" : "kube-proxy", remove });
  }
  return found;
}

/** The nftables dataplane as a backend module. */
export const nftModule: BackendModule<NftOptions, NftFacts, NftObject, Transaction, LinuxWorld> = defineBackend({
  name: "nft",
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
  variants: {
    undefinedClusterIPPort: "reject",
    unallocatedClusterIP: "drop",
    nodePortRejectScope: "nodePortAddresses",
    rejectFromHost: true,
    blockedWithoutEndpoints: "drop",
    affinityScope: "row",
    nodePortsOnLoopback: "TCP",
  },
  proxyMode: "nftables",
  nodePortAddressesDefault: NODE_PORT_ADDRESSES,
  // Loaded in 11 s, read again in a few; a change of somebody else's takes as long as ever beside them.
  serviceEntriesMax: 500_000,
  countingOptions: { counters: true },
  rights: { CAP_NET_ADMIN: "program nftables and forget flows" },
  createWorld: createLinuxWorld,
  options: NFT_OPTIONS,
  settle: (options) => ({ ...options, counters: options.counters || options.countBytes }),
  facts: (_options, world) => readFacts(world),
  probe: probeNft,
  share: (options, world): Shared => ({ options, world, own: new OwnCommits(), sessions: [] }),
  family: backendOf,
  close({ sessions }) {
    for (const session of sessions) session.close();
    return Promise.resolve();
  },
});

/** What both families share. */
interface Shared {
  readonly options: NftOptions;
  readonly world: LinuxWorld;
  readonly own: OwnCommits;
  readonly sessions: NftSession[];
}

function backendOf(family: IPFamily, { options, world, own, sessions }: Shared): Backend<NftFacts, NftObject, Transaction> {
  const nftFamily = NFT_FAMILY[family];
  const table = `${nftFamily} ${TABLE}`;
  const session = new NftSession({ exec: world.exec, log: world.log, own, kernel: world, table }, options.nftPath);
  sessions.push(session);
  const applier = new Applier(session, world);
  let mark: CommitMark | undefined;
  let failures = 0;
  const readCounts = async (_signal: AbortSignal, isKnown: (object: string) => boolean): Promise<ReadonlyMap<string, Counts>> =>
    (await world.netlink.nftTable(nftFamily, TABLE, () => new CountedSets()))?.counts(isKnown) ?? new Map<string, Counts>();
  return {
    skeleton: (context) => renderSkeleton(context, options),
    render: (row, context) => renderRow(row, context, options),
    keepPlaces: keepEndpointPlaces,
    isShared: ({ kind }) => kind === "chain",
    plan: (delta) => planDelta(delta, family),
    explain: explainPlan,
    async observe() {
      mark = await own.mark(world.netlink);
      const found = await world.netlink.nftTable(nftFamily, TABLE, () => new TableObjects(options.counters));
      return found === undefined ? { objects: new Map(), lingering: [] } : found.finish();
    },
    lookup: (objects) => lookupObjects(world, family, objects, options.counters),
    describe: (object, held) => describeObject(object, family, held),
    isWayIn: ({ kind, key }, device) => kind === "table" || (kind === "chain" && waysIn(device).includes(key)),
    async apply(plan, signal) {
      try {
        return await applier.apply(plan, signal);
      } catch (error) {
        failures++;
        throw error;
      }
    },
    async metrics() {
      const parts = await world.netlink.nftParts(nftFamily, TABLE, LOOPBACK_QUESTION);
      return [...nftMetrics(failures, applier.cleanupFailures), ...loopbackMetrics(parts)];
    },
    ...(options.counters ? { counts: readCounts } : {}),
    forgetFlows: (flows, signal) => world.netlink.deleteFlows(family, flows, signal),
    reportsDrift: true,
    watch(signal) {
      // Who watches is going to write: nft starts while the API's objects are read.
      session.start();
      return watchHost({ world, family, own, echoes: session.echoes, mark }, signal);
    },
    cleanup: () => dropNftTable({ own, netlink: world.netlink }, nftFamily, TABLE),
    leftovers: (isInUse) => findLeftovers({ own, netlink: world.netlink }, nftFamily, isInUse),
  };
}
