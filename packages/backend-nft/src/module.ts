import { ALL_CAPABILITIES, defineBackend } from "@turnout/core/backend";
import type { Backend, BackendModule, Counts, IPFamily } from "@turnout/core/backend";
import { createLinuxWorld, OwnCommits } from "@turnout/host";
import type { CommitMark, LinuxWorld } from "@turnout/host";
import { dropNftTable, NftSession } from "@turnout/host/nft";
import { Applier } from "./apply.ts";
import { CountedSets } from "./counts.ts";
import { describeObject } from "./describe.ts";
import { findLeftovers } from "./leftovers.ts";
import { lookupObjects } from "./lookup.ts";
import { NFT_FAMILY, TABLE } from "./names.ts";
import { LOOPBACK_QUESTION, loopbackMetrics, nftMetrics } from "./metrics.ts";
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
  serviceEntriesMax: 1_000_000,
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
  const applier = new Applier(session, nftFamily, world.log);
  let mark: CommitMark | undefined;
  let failures = 0;
  const readCounts = async (_signal: AbortSignal, isKnown: (object: string) => boolean): Promise<ReadonlyMap<string, Counts>> =>
    (await world.netlink.nftTable(nftFamily, TABLE, () => new CountedSets()))?.counts(isKnown) ?? new Map<string, Counts>();
  return {
    skeleton: (context) => renderSkeleton(context, options),
    render: (row, context) => renderRow(row, context, options),
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
