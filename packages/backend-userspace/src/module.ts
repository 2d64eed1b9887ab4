import { createNodeSockets, Fronts, SharedSockets, Traffic } from "@turnout/client/sockets";
import { ALL_CAPABILITIES, defineBackend } from "@turnout/core/backend";
import type { Backend, BackendModule, IPFamily, BackendMetric } from "@turnout/core/backend";
import { createLinuxWorld, OwnAddresses, Mutex } from "@turnout/host";
import type { OwnDevice } from "@turnout/host";
import { Applier } from "./apply.ts";
import { mayOwnAddresses, probeUserspace } from "./facts.ts";
import { OWN_DEVICE } from "./objects.ts";
import type { UserspaceObject } from "./objects.ts";
import { settleUserspaceOptions, USERSPACE_OPTIONS } from "./options.ts";
import type { UserspaceOptions } from "./options.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { NODE_PORT_ADDRESSES, renderRow, renderSkeleton } from "./render.ts";
import type { UserspaceFacts } from "./render.ts";
import { DriftBell, watchHost } from "./watch.ts";
import type { UserspaceWorld } from "./world.ts";

/** A proxy in this process as a backend module. */
export const userspaceModule: BackendModule<UserspaceOptions, UserspaceFacts, UserspaceObject, Step, UserspaceWorld> = defineBackend({
  name: "userspace",
  residence: "process",
  capabilities: {
    ...ALL_CAPABILITIES,
    SCTP: "Node has no SCTP sockets",
    serviceEndpoints: "it would connect to its own socket, so it leaves such an endpoint out",
    clientAddress: "it connects to endpoints itself, so they see this node; the PROXY protocol tells them more, where asked for",
    drop: "the kernel has accepted a TCP client before its address can be looked at, so it is reset; UDP is dropped",
  },
  variants: {
    // Whatever nobody listens on is the host's own affair.
    undefinedClusterIPPort: "pass",
    unallocatedClusterIP: "pass",
    nodePortRejectScope: "nodePortAddresses",
    rejectFromHost: true,
    blockedWithoutEndpoints: "reject",
    affinityScope: "row",
    nodePortsOnLoopback: "TCP",
  },
  nodePortAddressesDefault: NODE_PORT_ADDRESSES,
  // Endpoints cost memory alone: a million are there in 0.7 s, with 0.6 GB.
  serviceEntriesMax: 500_000,
  rights: {
    CAP_NET_ADMIN: "have Service addresses on this host",
    CAP_NET_BIND_SERVICE: "listen on ports below 1024",
  },
  createWorld: (base) => ({
    ...createLinuxWorld(base),
    sockets: createNodeSockets(),
    random: Math.random,
    canOwnAddresses: mayOwnAddresses,
  }),
  options: USERSPACE_OPTIONS,
  settle: settleUserspaceOptions,
  probe: probeUserspace,
  share: (options, world): Shared => ({ options, world, sockets: new SharedSockets(options), mutex: new Mutex(), appliers: [] }),
  family: backendOf,
  close: async ({ appliers }, signal) => void (await Promise.all(appliers.map((applier) => applier.close(signal)))),
});

const DEVICE: OwnDevice = { name: OWN_DEVICE, hint: "rename it, or pass own-addresses=false" };

/** What both families share. */
interface Shared {
  readonly options: UserspaceOptions;
  readonly world: UserspaceWorld;
  readonly sockets: SharedSockets;
  readonly mutex: Mutex;
  readonly appliers: Applier[];
}

function backendOf(family: IPFamily, { options, world, sockets, mutex, appliers }: Shared): Backend<UserspaceFacts, UserspaceObject, Step> {
  const traffic = new Traffic(family, world, options, sockets);
  const bell = new DriftBell();
  const fronts = new Fronts(traffic, (id) => {
    applier.lose(id);
    bell.ring(`${id} failed; the kernel does not tell whether by another program`);
  });
  const own = new OwnAddresses(world, DEVICE, family, mutex);
  const applier = new Applier(traffic, fronts, own, options.map);
  appliers.push(applier);
  return {
    skeleton: renderSkeleton,
    render: (row, context) => renderRow(row, context, options),
    plan: planDelta,
    explain: explainPlan,
    observe: () => applier.observe(),
    apply: (plan, signal) => applier.apply(plan, signal),
    forgetFlows: (flows, signal) => Promise.resolve(signal.aborted ? 0 : fronts.forget(flows)),
    reportsDrift: true,
    watch: (signal) => watchHost({ world, bell, canOwnAddresses: world.canOwnAddresses, isDisturbed: () => applier.isDisturbed() }, signal),
    metrics: () => numbersOf(fronts, traffic),
    cleanup: (signal) => own.removeAll(signal),
  };
}

/** What this backend counts for operators. */
function numbersOf(fronts: Fronts, { seen }: Traffic): readonly BackendMetric[] {
  const metric = (kind: BackendMetric["kind"], name: string, help: string, value: number): BackendMetric => ({
    name: `turnout_userspace_${name}`,
    help,
    kind,
    value,
  });
  return [
    metric("gauge", "connections", "TCP connections that are open or being opened.", fronts.connections),
    metric("gauge", "udp_sessions", "UDP clients that have a socket to an endpoint.", fronts.sessions.size),
    metric("counter", "connections_total", "TCP connections that were accepted.", seen.connections),
    metric("counter", "udp_sessions_total", "UDP sessions that were begun.", seen.sessions),
    metric("counter", "connections_refused_total", "TCP connections over a limit.", seen.refused),
    metric("counter", "dial_failures_total", "Endpoints that could not be reached when they were dialled.", seen.failedDials),
  ];
}
