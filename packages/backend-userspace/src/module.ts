import type { Backend, BackendModule, Capability, IPFamily, World } from "@turnout/core";
import { OwnAddresses, Turns } from "@turnout/host";
import type { OwnDevice } from "@turnout/host";
import { Applier } from "./apply.ts";
import { mayOwnAddresses, probeUserspace } from "./facts.ts";
import { Fronts } from "./fronts.ts";
import { createNodeSockets } from "./node-sockets.ts";
import type { UserspaceObject } from "./objects.ts";
import { parseUserspaceOptions } from "./options.ts";
import type { UserspaceOptions } from "./options.ts";
import { numbersOf } from "./numbers.ts";
import { OWN_DEVICE } from "./objects.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { renderRow, renderSkeleton } from "./render.ts";
import type { UserspaceFacts } from "./render.ts";
import type { UserspaceWorld } from "./sockets.ts";
import { Traffic } from "./traffic.ts";
import type { Counters } from "./traffic.ts";
import { DriftBell, watchHost } from "./watch.ts";

const CAPABILITIES: Readonly<Record<Capability, true | string>> = {
  IPv4: true,
  IPv6: true,
  TCP: true,
  UDP: true,
  SCTP: "Node has no SCTP sockets",
  sessionAffinity: true,
  sourceRanges: true,
  clientAddress: "it connects to endpoints itself, so they see this node; the PROXY protocol tells them more, where asked for",
  hairpin: true,
  hostOrigin: true,
  drop: "the kernel has accepted a TCP client before its address can be looked at, so it is reset; UDP is dropped",
};

/** A proxy in this process as a backend module. */
export const userspaceModule: BackendModule<UserspaceOptions, UserspaceFacts, UserspaceObject, Step> = {
  name: "userspace",
  contract: 1,
  residence: "process",
  capabilities: CAPABILITIES,
  variants: {
    // Whatever nobody listens on is the host's own affair.
    undefinedClusterIPPort: "pass",
    unallocatedClusterIP: "pass",
    nodePortRejectScope: "nodePortAddresses",
    rejectFromHost: true,
    blockedWithoutEndpoints: "reject",
    affinityScope: "row",
    nodePortsOnLoopback: "never",
  },
  // Endpoints cost memory alone: a million are there in 0.7 s, with 0.6 GB.
  serviceEntriesMax: 1_000_000,
  parseOptions: parseUserspaceOptions,
  probe: (options, world) => probeUserspace(options, world, realWorld(world).canOwnAddresses),
  open: (options, family, world) => Promise.resolve(openBackend(options, family, realWorld(world))),
};

/** What both families of a process share: they are opened with the same options. */
const SHARED = new WeakMap<UserspaceOptions, { readonly counters: Counters; readonly turns: Turns }>();

function sharedBy(options: UserspaceOptions): { readonly counters: Counters; readonly turns: Turns } {
  const shared = SHARED.get(options) ?? { counters: { connections: 0, sessions: 0 }, turns: new Turns() };
  SHARED.set(options, shared);
  return shared;
}

/** What a world lacks, this machine has. */
function realWorld(world: World & Partial<UserspaceWorld>): UserspaceWorld {
  const { sockets = createNodeSockets(), random = Math.random, canOwnAddresses = mayOwnAddresses } = world;
  return { ...world, sockets, random, canOwnAddresses };
}

const DEVICE: OwnDevice = { name: OWN_DEVICE, hint: "rename it, or pass own-addresses=false" };

function openBackend(options: UserspaceOptions, family: IPFamily, world: UserspaceWorld): Backend<UserspaceFacts, UserspaceObject, Step> {
  const { counters, turns } = sharedBy(options);
  const traffic = new Traffic(family, world, options, counters);
  const bell = new DriftBell();
  const fronts = new Fronts(traffic, (id) => {
    applier.lose(id);
    bell.ring(`${id} failed`);
  });
  const own = new OwnAddresses(world, DEVICE, family, turns);
  const applier = new Applier(traffic, fronts, own);
  return {
    skeleton: renderSkeleton,
    render: (row, context) => renderRow(row, context, options),
    plan: planDelta,
    explain: explainPlan,
    observe: () => applier.observe(),
    apply: (plan, signal) => applier.apply(plan, signal),
    forgetFlows: (flows, signal) => Promise.resolve(signal.aborted ? 0 : fronts.forget(flows)),
    tellsDrift: true,
    watch: (signal) => watchHost({ world, bell, canOwnAddresses: world.canOwnAddresses, isDisturbed: () => applier.isDisturbed() }, signal),
    metrics: () => numbersOf(fronts, traffic),
    cleanup: (signal) => own.removeAll(signal),
    close: (signal) => applier.close(signal),
  };
}
