import { ALL_CAPABILITIES, objectId } from "@turnout/core/backend";
import type {
  Backend,
  BackendModule,
  Context,
  Counts,
  Dataplane,
  Delta,
  FlowFilter,
  HostEvent,
  IPFamily,
  Leftover,
  ObjectWords,
  Observed,
  Outcome,
  Plan,
  ServicePort,
} from "@turnout/core/backend";
import { EchoCount, Mutex, OwnAddresses, OwnCommits } from "@turnout/host";
import type { OwnDevice } from "@turnout/host";
import { IpsetTool } from "@turnout/host/ipset";
import { IptablesTool, lookupIn, SectionRestore } from "@turnout/host/iptables";
import type { IptablesLookup } from "@turnout/host/iptables";
import { Applier } from "./apply.ts";
import { describeObject } from "./describe.ts";
import { lookAtHost } from "./host-look.ts";
import type { HostParts } from "./host-look.ts";
import { Leaver } from "./leaver.ts";
import { DEVICE } from "./names.ts";
import { readKey, serviceKey } from "./objects.ts";
import type { IpvsObject } from "./objects.ts";
import { readLook } from "./observe.ts";
import { IPVS_OPTIONS, parseIpvsOptions } from "./options.ts";
import type { IpvsFacts, IpvsOptions } from "./options.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { probeIpvs } from "./probe.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { BoundCount } from "./fingerprints.ts";
import { watchHost } from "./watch.ts";
import { Watches } from "./watches.ts";
import { createIpvsWorld } from "./world.ts";
import type { IpvsWorld } from "./world.ts";

/** The ipvs dataplane as a backend module. */
export const ipvsModule: BackendModule<IpvsOptions, IpvsFacts, IpvsObject, Step, IpvsWorld> = {
  name: "ipvs",
  contract: 2,
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
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
  parseOptions: parseIpvsOptions,
  probe: probeIpvs,
  open: (options, world) => Promise.resolve(openDataplane(options, world)),
};

/** What both families share. */
interface Shared {
  readonly options: IpvsOptions;
  readonly world: IpvsWorld;
  /** The device is one for both. */
  readonly mutex: Mutex;
  readonly lookup: IptablesLookup;
}

function openDataplane(options: IpvsOptions, world: IpvsWorld): Dataplane<IpvsFacts, IpvsObject, Step> {
  const shared: Shared = { options, world, mutex: new Mutex(), lookup: lookupIn(world, options.variant) };
  return { family: (family) => new IpvsBackend(family, shared), close: () => Promise.resolve() };
}

const OWN_DEVICE: OwnDevice = { name: DEVICE, hint: "rename it: service addresses are put on a device of this name" };

class IpvsBackend implements Backend<IpvsFacts, IpvsObject, Step> {
  readonly #tool: IptablesTool;
  readonly #parts: HostParts;
  readonly #echoes = new EchoCount();
  readonly #bound = new BoundCount();
  readonly #watches: Watches;
  readonly #applier: Applier;
  readonly #leaver: Leaver;

  constructor(family: IPFamily, { world, options, mutex, lookup }: Shared) {
    this.#tool = new IptablesTool(world, family, lookup);
    const [sets, addresses] = [new IpsetTool(world.exec), new OwnAddresses(world, OWN_DEVICE, family, mutex)];
    this.#parts = { family, world, options, sets, addresses };
    this.#watches = new Watches({ family, world, tool: this.#tool, bound: this.#bound });
    const rules = new SectionRestore(this.#tool, world.log, { own: new OwnCommits(), echoes: this.#echoes });
    this.#applier = new Applier({ world, family, sets, rules, addresses, drainMs: options.drainSeconds * 1000 });
    this.#leaver = new Leaver(this.#parts, this.#tool);
  }

  skeleton(context: Context<IpvsFacts>): readonly IpvsObject[] {
    return renderSkeleton(context, this.#parts);
  }

  render(row: ServicePort, context: Context<IpvsFacts>): readonly IpvsObject[] {
    return renderRow(row, context, this.#parts.options);
  }

  /** An address, and the members that speak of it or of an endpoint, may be of several rows. */
  isShared({ kind, key }: IpvsObject): boolean {
    return kind === "address" || (kind === "entry" && /^KUBE-(?:6-)?(?:IPVS-IPS|LOOP-BACK|HEALTH-CHECK-NODE-PORT) /.test(key));
  }

  plan(delta: Delta<IpvsObject>): Plan<Step> {
    return planDelta(delta);
  }

  explain(plan: Plan<Step>): string {
    return explainPlan(plan);
  }

  async observe(signal: AbortSignal): Promise<Observed<IpvsObject>> {
    const { family, options } = this.#parts;
    return readLook(await lookAtHost(this.#parts, this.#tool, signal), family, options);
  }

  /**
   * Sets and rules are few and quickly read; virtual servers are asked for one by one, and told with all their real servers: those of one are asked for
   * together.
   */
  async lookup(objects: readonly IpvsObject[], signal: AbortSignal): Promise<ReadonlyMap<string, IpvsObject>> {
    const { family, options } = this.#parts;
    const keys = new Set(objects.filter(({ kind }) => kind === "service" || kind === "server").map(({ key }) => serviceKey(readKey(key))));
    const look = await lookAtHost(this.#parts, this.#tool, signal, (server) => keys.has(serviceKey(server)));
    const found = readLook(look, family, options).objects;
    const ids = new Set(objects.map(objectId));
    return new Map([...found].filter(([id, { kind }]) => ids.has(id) || kind === "server"));
  }

  describe(object: IpvsObject, held?: IpvsObject): ObjectWords {
    return describeObject(object, held);
  }

  apply(plan: Plan<Step>, signal: AbortSignal): Promise<Outcome<IpvsObject>> {
    return this.#watches.during(plan.steps, () => this.#applier.apply(plan, signal).finally(() => this.#bound.forget()));
  }

  /** The kernel counts for virtual servers, as `ipvsadm -Ln --stats` shows; what the sets refuse or drop is counted for nobody. */
  async counts(_signal: AbortSignal, isKnown: (object: string) => boolean): Promise<ReadonlyMap<string, Counts>> {
    const { family, world } = this.#parts;
    const all = await world.ipvs.counts(family);
    const named = all.map(({ connections, bytesIn, bytesOut, ...service }) => {
      const id = objectId({ kind: "service", key: serviceKey(service), value: true });
      return [id, { connections, bytesIn, bytesOut }] as const;
    });
    // Others have virtual servers, too.
    return new Map(named.filter(([id]) => isKnown(id)));
  }

  forgetFlows(flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
    return this.#parts.world.netlink.deleteFlows(this.#parts.family, flows, signal);
  }

  watch(signal: AbortSignal): AsyncIterable<HostEvent<IpvsFacts>> {
    const [parts, tool, echoes, watches, bound] = [this.#parts, this.#tool, this.#echoes, this.#watches, this.#bound];
    return watchHost({ parts, tool, echoes, watches, bound }, signal);
  }

  /** All at once: connections through IPVS end. */
  cleanup(signal: AbortSignal): Promise<void> {
    return this.#leaver.removeAll(signal);
  }

  /** What kube-proxy in ipvs mode left is ours as well, so while this backend is in use nothing is left over. */
  leftovers(isInUse: boolean, signal: AbortSignal): Promise<readonly Leftover[]> {
    return isInUse ? Promise.resolve([]) : this.#leaver.leftovers(signal);
  }
}
