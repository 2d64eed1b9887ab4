import { ALL_CAPABILITIES, defineBackend, objectId } from "@turnout/core/backend";
import type { Backend, BackendModule, IPFamily } from "@turnout/core/backend";
import { EchoCount, Mutex, OwnAddresses, OwnCommits } from "@turnout/host";
import type { OwnDevice } from "@turnout/host";
import { IpsetTool } from "@turnout/host/ipset";
import { IptablesTool, lookupIn, SectionRestore } from "@turnout/host/iptables";
import type { IptablesLookup } from "@turnout/host/iptables";
import { Applier } from "./apply.ts";
import { describeObject } from "./describe.ts";
import { lookAtHost } from "./host-look.ts";
import { Leaver } from "./leaver.ts";
import { DEVICE } from "./names.ts";
import { readKey, serviceKey } from "./objects.ts";
import type { IpvsObject } from "./objects.ts";
import { readLook } from "./observe.ts";
import { IPVS_OPTIONS } from "./options.ts";
import type { IpvsFacts, IpvsOptions } from "./options.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { probeIpvs, readFacts } from "./probe.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { BoundCount } from "./watching/fingerprints.ts";
import { watchHost } from "./watching/watch.ts";
import { Watches } from "./watching/watches.ts";
import { createIpvsWorld } from "./world.ts";
import type { IpvsWorld } from "./world.ts";

/** The ipvs dataplane as a backend module. */
export const ipvsModule: BackendModule<IpvsOptions, IpvsFacts, IpvsObject, Step, IpvsWorld> = defineBackend({
  name: "ipvs",
  residence: "kernel",
  capabilities: { ...ALL_CAPABILITIES, serviceEndpoints: "Services' addresses are the host's own, so such an endpoint is this host" },
  variants: {
    // Service addresses are the host's own here, and nothing of the host's may answer there.
    undefinedClusterIPPort: "reject",
    undefinedExternalPort: "reject",
    unallocatedClusterIP: "pass",
    nodePortRejectScope: "nodePortAddresses",
    rejectFromHost: true,
    blockedWithoutEndpoints: "drop",
    affinityScope: "address",
    nodePortsOnLoopback: "TCP",
    // What masquerades is in sets, what is served in IPVS.
    rowChanges: "inParts",
  },
  countingOptions: {},
  rights: {
    CAP_NET_ADMIN: "program IPVS, sets, rules and addresses",
    CAP_NET_RAW: "program legacy iptables",
  },
  createWorld: createIpvsWorld,
  options: IPVS_OPTIONS,
  // "" is how kube-proxy's configuration leaves it to the proxy.
  settle: (options) => ({ ...options, scheduler: options.scheduler || "rr" }),
  facts: (_options, world) => readFacts(world),
  probe: probeIpvs,
  share: (options, world): Shared => ({ options, world, mutex: new Mutex(), lookup: lookupIn(world, options.variant) }),
  family: backendOf,
});

/** What both families share. */
interface Shared {
  readonly options: IpvsOptions;
  readonly world: IpvsWorld;
  /** The device is one for both. */
  readonly mutex: Mutex;
  readonly lookup: IptablesLookup;
}

const OWN_DEVICE: OwnDevice = { name: DEVICE, hint: "rename it: service addresses are put on a device of this name" };

/** An address, and the members that name it or an endpoint, may be of several rows. */
const SHARED_ENTRY = /^KUBE-(?:6-)?(?:IPVS-IPS|LOOP-BACK|HEALTH-CHECK-NODE-PORT) /;

function backendOf(family: IPFamily, { world, options, mutex, lookup }: Shared): Backend<IpvsFacts, IpvsObject, Step> {
  const tool = new IptablesTool(world, family, lookup);
  const [sets, addresses] = [new IpsetTool(world.exec), new OwnAddresses(world, OWN_DEVICE, family, mutex)];
  const parts = { family, world, options, sets, addresses };
  const [echoes, bound] = [new EchoCount(), new BoundCount()];
  const watches = new Watches({ family, world, tool, bound });
  const rules = new SectionRestore(tool, world.log, { own: new OwnCommits(), echoes });
  const applier = new Applier({ world, family, sets, rules, addresses, drainMs: options.drainSeconds * 1000 });
  const leaver = new Leaver(parts, tool);
  return {
    skeleton: (context) => renderSkeleton(context, parts),
    isOptional: ({ kind }) => kind === "sysctl" || kind === "timeout",
    render: (row, context) => renderRow(row, context, options),
    isShared: ({ kind, key }) => kind === "address" || (kind === "entry" && SHARED_ENTRY.test(key)),
    plan: planDelta,
    explain: explainPlan,
    observe: async (signal) => readLook(await lookAtHost(parts, tool, signal), family, options),
    /** Sets and rules are few and quickly read; virtual servers are read one by one, and reported with all their real servers: those of one are read together. */
    async lookup(objects, signal) {
      const servers = objects.filter(({ kind }) => kind === "service" || kind === "server");
      const keys = new Set(servers.map(({ key }) => serviceKey(readKey(key))));
      const look = await lookAtHost(parts, tool, signal, (server) => keys.has(serviceKey(server)));
      const ids = new Set(objects.map(objectId));
      return new Map([...readLook(look, family, options).objects].filter(([id, { kind }]) => ids.has(id) || kind === "server"));
    },
    describe: describeObject,
    apply: (plan, signal) => watches.during(plan.steps, () => applier.apply(plan, signal).finally(() => bound.forget())),
    /** The kernel counts for virtual servers, as `ipvsadm -Ln --stats` shows; what the sets refuse or drop is not counted. */
    async counts(_signal, isKnown) {
      const named = (await world.ipvs.counts(family)).map(({ connections, bytesIn, bytesOut, ...service }) => {
        const id = objectId({ kind: "service", key: serviceKey(service), value: true });
        return [id, { connections, bytesIn, bytesOut }] as const;
      });
      // Other programs have virtual servers, too.
      return new Map(named.filter(([id]) => isKnown(id)));
    },
    forgetFlows: (flows, signal) => world.netlink.deleteFlows(family, flows, signal),
    watch: (signal) => watchHost({ parts, tool, echoes, watches, bound }, signal),
    /** All at once: connections through IPVS end. */
    cleanup: (signal) => leaver.removeAll(signal),
    /** What kube-proxy in ipvs mode left is ours as well, so while this backend is in use nothing is left over. */
    leftovers: (isInUse, signal) => (isInUse ? Promise.resolve([]) : leaver.leftovers(signal)),
  };
}
