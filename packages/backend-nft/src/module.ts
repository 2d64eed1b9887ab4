import { ALL_CAPABILITIES } from "@turnout/core";
import type { Backend, BackendModule, FlowFilter, HostEvent, IPFamily, Leftover, Observed, Outcome, Plan, World } from "@turnout/core";
import { ownCommitsOf } from "@turnout/host";
import type { CommitMark } from "@turnout/host";
import { Applier } from "./apply.ts";
import { findLeftovers } from "./leftovers.ts";
import { NFT_FAMILY, TABLE } from "./names.ts";
import { NftSession } from "./nft-session.ts";
import type { NftObject } from "./objects.ts";
import { parseTable } from "./observe.ts";
import { parseNftOptions } from "./options.ts";
import type { NftFacts, NftOptions } from "./options.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Transaction } from "./plan.ts";
import { probeNft } from "./probe.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { watchHost } from "./watch.ts";

/** The nftables dataplane as a backend module. */
export const nftModule: BackendModule<NftOptions, NftFacts, NftObject, Transaction> = {
  name: "nft",
  contract: 1,
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
  variants: {
    undefinedClusterIPPort: "reject",
    unallocatedClusterIP: "drop",
    nodePortRejectScope: "nodePortAddresses",
    rejectFromHost: true,
    blockedWithoutEndpoints: "drop",
    affinityScope: "row",
    nodePortsOnLoopback: "never",
  },
  // Loaded in 11 s, read again in a few; a change of somebody else's takes as long as ever beside them.
  serviceEntriesMax: 1_000_000,
  parseOptions: parseNftOptions,
  probe: (_options, world, signal) => probeNft(world, signal),
  open: (options, family, world) => Promise.resolve(openBackend(options, family, world)),
};

function openBackend(options: NftOptions, family: IPFamily, world: World): Backend<NftFacts, NftObject, Transaction> {
  const session = new NftSession(world, options.nftPath);
  const nftFamily = NFT_FAMILY[family];
  const applier = new Applier(session, nftFamily, world.log);
  let mark: CommitMark | undefined;
  return {
    skeleton: renderSkeleton,
    render: (row, context) => renderRow(row, context, options),
    isShared: ({ kind }) => kind === "chain",
    plan: (delta): Plan<Transaction> => planDelta(delta, family),
    explain: explainPlan,
    async observe(signal: AbortSignal): Promise<Observed<NftObject>> {
      mark = await ownCommitsOf(world.netlink).mark(world.netlink);
      const text = await session.listTable(nftFamily, TABLE, signal);
      return text === undefined ? { objects: new Map(), lingering: [] } : parseTable(text);
    },
    apply: (plan, signal): Promise<Outcome<NftObject>> => applier.apply(plan, signal),
    forgetFlows: (flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> => world.netlink.deleteFlows(family, flows, signal),
    watch: (signal: AbortSignal): AsyncIterable<HostEvent<NftFacts>> => watchHost({ world, family, echoes: session.echoes, mark }, signal),
    cleanup: (signal): Promise<void> => session.dropTable(nftFamily, TABLE, signal),
    leftovers: (isInUse, signal): Promise<readonly Leftover[]> => findLeftovers(session, nftFamily, isInUse, signal),
    close(): Promise<void> {
      session.close();
      return Promise.resolve();
    },
  };
}
