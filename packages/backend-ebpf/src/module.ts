import { join } from "node:path";
import { ALL_CAPABILITIES, defineBackend, objectId, ProxyError } from "@turnout/core/backend";
import type {
  Backend,
  BackendMetric,
  BackendModule,
  Capacity,
  Context,
  Counts,
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
  Turn,
} from "@turnout/core/backend";
import type { FingerprintChanges } from "@turnout/host";
import { Applier } from "./apply.ts";
import { Carriers } from "./packets/carriers.ts";
import { HookLinks } from "./attach/hook-links.ts";
import { familiesOf, HOOKS } from "./hooks.ts";
import { lookAtPins } from "./host-look.ts";
import { leaveFamily } from "./leftovers.ts";
import { isNamed, ListUse } from "./pins/list-use.ts";
import { filledMark, rowId, servingMark } from "./names.ts";
import { loopbackMetrics, mapMetrics, rowCounts } from "./metrics.ts";
import { TABLE_OBJECT } from "./packets/nft-table.ts";
import type { EbpfObject, TableObject } from "./objects.ts";
import { PacketHost } from "./packets/packet-host.ts";
import { readLook } from "./observe.ts";
import { capacitiesOf, EBPF_OPTIONS } from "./options.ts";
import type { EbpfFacts, EbpfOptions } from "./options.ts";
import { PinnedMaps } from "./pins/pinned-maps.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { probeEbpf } from "./probe.ts";
import { renderRow } from "./render.ts";
import { NODE_PORT_ADDRESSES, renderSkeleton } from "./skeleton.ts";
import { Serving } from "./serving.ts";
import { describeObject, unservedDevice, unservedSockets } from "./describe.ts";
import { seeTable, seeTouched } from "./watching/seen.ts";
import type { TouchedParts } from "./watching/fingerprints.ts";
import { endStuckSockets } from "./sockets/stuck-sockets.ts";
import { watchHost } from "./watching/watch.ts";
import { Watches } from "./watching/watches.ts";
import { createEbpfWorld } from "./world.ts";
import type { EbpfWorld } from "./world.ts";

/** The eBPF dataplane as a backend module. */
export const ebpfModule: BackendModule<EbpfOptions, EbpfFacts, EbpfObject, Step, EbpfWorld> = defineBackend({
  name: "ebpf",
  residence: "kernel",
  capabilities: {
    ...ALL_CAPABILITIES,
    SCTP: "the kernel's functions that make flows in conntrack refuse it, and no hook of sockets sees it",
  },
  variants: {
    nodePortRejectScope: "nodePortAddresses",
    blockedWithoutEndpoints: "drop",
    affinityScope: "row",
    nodePortsOnLoopback: "TCP",
    localClients: "sockets",
  },
  nodePortAddressesDefault: NODE_PORT_ADDRESSES,
  serviceEntriesMax: 500_000,
  countingOptions: { counters: true },
  rights: {
    CAP_BPF: "load programs and maps",
    CAP_NET_ADMIN: "attach programs and forget flows",
    CAP_PERFMON: "load programs that read memory of the kernel",
    CAP_SYS_ADMIN: "enter network namespaces of pods, to end UDP sockets whose endpoint is gone",
    CAP_SYS_PTRACE: "find network namespaces of pods by their processes",
  },
  createWorld: createEbpfWorld,
  options: EBPF_OPTIONS,
  probe: probeEbpf,
  share: shareOf,
  /** The first family keeps what both share. */
  family(family, shared) {
    shared.families.add(family);
    return new EbpfBackend(family, shared.families.values().next().value === family, shared);
  },
  close({ maps, packets }) {
    maps.close();
    packets.nft.close();
    return Promise.resolve();
  },
});

/** The maps and links of a host, which both families share. */
function shareOf(options: EbpfOptions, world: EbpfWorld): Shared {
  const maps = new PinnedMaps(world, options);
  const families = new Set<IPFamily>();
  const filtered = new Set<string>();
  const cgroup = (): string => {
    const folder = options.cgroup ?? world.mounts().cgroup2;
    if (folder !== undefined) return folder;
    throw new ProxyError("host_unsupported", "cgroup v2 is not mounted", { hint: "mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified" });
  };
  return {
    options,
    filtered,
    watches: new Watches({ maps, world, filtered: () => filtered }),
    world,
    maps,
    families,
    packets: new PacketHost(world),
    serving: new Serving(),
    links: new HookLinks({ world, maps, cgroup, families: () => families }),
    carriers: new Carriers(world.log),
  };
}

/** What both families share. */
interface Shared {
  readonly options: EbpfOptions;
  readonly world: EbpfWorld;
  readonly maps: PinnedMaps;
  readonly links: HookLinks;
  readonly packets: PacketHost;
  readonly serving: Serving;
  /** Those of the family that keeps what both share. */
  readonly carriers: Carriers;
  /** What somebody else changed, as far as it is quickly seen. */
  readonly watches: Watches;
  /** Keys of devices at which filters of clsact carry our programs. */
  readonly filtered: Set<string>;
  /** Those in use. */
  readonly families: Set<IPFamily>;
}

class EbpfBackend implements Backend<EbpfFacts, EbpfObject, Step> {
  readonly looksUpCheaply = true;
  readonly #family: IPFamily;
  readonly #isKeeper: boolean;
  readonly #shared: Shared;
  readonly #lists = new ListUse();
  /** Rows that programs count for, by their names in the maps. */
  readonly #counted = new Set<string>();
  readonly #carriers: Carriers;
  readonly #applier: Applier;

  constructor(family: IPFamily, isKeeper: boolean, shared: Shared) {
    this.#family = family;
    this.#isKeeper = isKeeper;
    this.#shared = shared;
    const { maps, links, world, serving } = shared;
    this.#carriers = isKeeper ? shared.carriers : new Carriers(world.log);
    this.#applier = new Applier({
      clock: world.clock,
      lists: this.#lists,
      maps: () => maps.ensure(),
      attach: async (some, signal) => {
        const failed = await links.attach(some, signal);
        serving.tried(some, failed);
        return failed;
      },
      detach: (devices) => links.detach(devices),
      setTable: (isWanted, signal) => this.#setTable(isWanted, signal),
      mark: (one) => links.mark(one),
      serve: (one, signal) => this.#serve(one, signal),
      removeFolder: (path) => links.removeFolder(path),
    });
  }

  skeleton(context: Context<EbpfFacts>): readonly EbpfObject[] {
    const { maps, options } = this.#shared;
    const parts = { isKeeper: this.#isKeeper, programs: maps.programs, isNamedOnly: options.devices.length > 0 };
    const skeleton = renderSkeleton(context, parts);
    if (this.#isKeeper) this.#carriers.learn(context.host.devices, skeleton);
    return skeleton;
  }

  render(row: ServicePort, context: Context<EbpfFacts>): readonly EbpfObject[] {
    const { options } = this.#shared;
    if (options.counters) this.#counted.add(rowId(row.key, row.family));
    return renderRow(row, context, options);
  }

  capacities(): readonly Capacity[] {
    const { options, families } = this.#shared;
    return capacitiesOf(options.sizes, families.size);
  }

  /** Services with the same endpoints have one list, and so it is with source ranges. */
  isShared(object: EbpfObject): boolean {
    return isNamed(object);
  }

  /** Devices come and go with pods, and addresses with other programs: what one of them lacks concerns few packets. */
  isOptional({ kind }: EbpfObject): boolean {
    return kind === "device" || kind === "node-address";
  }

  plan(delta: Delta<EbpfObject>): Plan<Step> {
    return planDelta(delta);
  }

  explain(plan: Plan<Step>): string {
    return explainPlan(plan);
  }

  async observe(signal: AbortSignal): Promise<Observed<EbpfObject>> {
    const { maps, world, packets } = this.#shared;
    const { byClsact } = await packets.support(signal);
    const look = { ...(await lookAtPins(maps, world, byClsact)), table: this.#isKeeper ? await packets.table(signal) : undefined };
    const observed = readLook(look, { family: this.#family, isKeeper: this.#isKeeper });
    this.#lists.adopt(observed.objects.values());
    if (this.#isKeeper) {
      this.#shared.serving.found(observed.objects.values());
      this.#carriers.found(observed.objects.values());
      if (byClsact) await this.#shared.watches.during([], () => this.#noteFilters(signal));
    }
    return observed;
  }

  async lookup(objects: readonly EbpfObject[], signal: AbortSignal): Promise<ReadonlyMap<string, EbpfObject>> {
    const { maps, world, packets } = this.#shared;
    const { byClsact } = await packets.support(signal);
    const table = this.#isKeeper && objects.some(({ kind }) => kind === "table") ? await packets.table(signal) : undefined;
    const look = { ...(await lookAtPins(maps, world, byClsact, { objects })), table };
    const { objects: found } = readLook(look, { family: this.#family, isKeeper: this.#isKeeper });
    const ids = new Set(objects.map(objectId));
    return new Map([...found].filter(([id]) => ids.has(id)));
  }

  /** Where sockets are served their packets need no devices, and nobody can tell of all whose they are. */
  isWayIn({ kind, key }: EbpfObject): boolean {
    const hook = HOOKS[key];
    // Nothing comes in where sockets are closed.
    const isAsked = hook !== undefined && hook !== "sock_release" && familiesOf(hook).includes(this.#family);
    return kind === "device" || (kind === "link" && isAsked);
  }

  describe(object: EbpfObject, held?: EbpfObject): ObjectWords {
    const { root, folder } = this.#shared.maps;
    const nameOf = (ifindex: number): string => this.#carriers.nameOf(ifindex);
    return describeObject(object, { nameOf, folder: root === undefined ? undefined : join(root, folder) }, held);
  }

  unserved(device: string, { host }: Context<EbpfFacts>): string | undefined {
    const { options, carriers } = this.#shared;
    if (device === "") return unservedSockets(options, host);
    return carriers.isWithout(device) ? unservedDevice(device, options) : undefined;
  }

  async apply(plan: Plan<Step>, signal: AbortSignal, turn?: Turn): Promise<Outcome<EbpfObject>> {
    return await this.#shared.watches.during(plan.steps, async () => {
      const outcome = await this.#applier.apply(plan, signal, turn);
      for (const { verb, object } of plan.steps) if (verb === "delete" && object.kind === "counter") this.#counted.delete(object.key);
      if (this.#isKeeper) this.#carriers.applied(plan, outcome);
      await this.#noteFilters(signal);
      return outcome;
    });
  }

  /** Flows of packets in conntrack, and sockets of this node; neither waits for the other to succeed. */
  async forgetFlows(flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
    const { maps, world, packets } = this.#shared;
    const forgetPackets = async (): Promise<number> =>
      (await packets.isServed(signal)) && !signal.aborted ? await world.netlink.deleteFlows(this.#family, flows, signal) : 0;
    const endSockets = async (): Promise<number> => {
      const found = maps.find();
      return found === undefined ? 0 : await endStuckSockets(found, flows, this.#family, world, signal);
    };
    const results = await Promise.allSettled([forgetPackets(), endSockets()]);
    const errors = results.flatMap((result): readonly unknown[] => (result.status === "rejected" ? [result.reason] : []));
    const [first, second] = errors;
    if (ProxyError.is(first) && ProxyError.is(second))
      throw new ProxyError(first.code, "flows and sockets could not be dealt with", {
        object: `${first.message}; ${second.message}`,
        cause: new AggregateError(errors),
      });
    if (errors.length > 0) throw first;
    return results.reduce((sum, result) => sum + (result.status === "fulfilled" ? result.value : 0), 0);
  }

  async *watch(signal: AbortSignal): AsyncIterable<HostEvent<EbpfFacts>> {
    const { options, world, maps, packets, watches } = this.#shared;
    const { byClsact } = await packets.support(signal);
    const onSeen = (objects: readonly EbpfObject[], touched: TouchedParts): void => this.#saw(objects, touched);
    const sight = { maps, world, byClsact, family: this.#family, isKeeper: this.#isKeeper, watches, onSeen };
    let hasPackets = await packets.isServed(signal);
    while (!signal.aborted) {
      const round = new AbortController();
      const until = AbortSignal.any([signal, round.signal]);
      const watched = {
        hasPackets,
        canServePackets: () => packets.lookAgain(signal),
        echoes: this.#isKeeper ? packets.nft.echoes : undefined,
        seeTable: () => seeTable(packets, watches, signal),
        fingerprints: (stop: AbortSignal) => watches.follow(stop),
        see: (changes: FingerprintChanges) => seeTouched(changes, sight),
      };
      yield* watchHost(options, world, watched, until);
      round.abort();
      if (signal.aborted) return;
      hasPackets = true;
      // Which rows can be expressed is decided at the start.
      if (this.#isKeeper)
        world.log.info("packets from elsewhere are served from now on", {
          hint: "start the proxy again, so that packets are dropped, not refused, and source ranges are open for their clients",
        });
    }
  }

  /** A part of the host was seen. */
  #saw(objects: readonly EbpfObject[], { maps, attached }: TouchedParts): void {
    this.#lists.adoptPart(objects, maps);
    if (attached.size === 0) return;
    this.#shared.serving.found(objects);
    this.#carriers.found(objects);
  }

  metrics(): readonly BackendMetric[] {
    const maps = this.#shared.maps.find();
    if (maps === undefined) return [];
    const counters = maps.get("counters");
    const onLoopback = counters === undefined ? [] : loopbackMetrics(counters, this.#family);
    return this.#isKeeper ? [...mapMetrics(maps), ...this.#carriers.metrics(), ...onLoopback] : onLoopback;
  }

  counts(): Promise<ReadonlyMap<string, Counts>> {
    const counters = this.#shared.maps.find()?.get("counters");
    return Promise.resolve(counters === undefined ? new Map() : rowCounts(counters, this.#counted));
  }

  /** What both families share goes with the last of them. */
  async cleanup(signal: AbortSignal): Promise<void> {
    const { maps, world } = this.#shared;
    if (maps.root === undefined || !world.pinFiles.exists(maps.root)) return await this.#removeAll(signal);
    const look = await lookAtPins(maps, world, false);
    if (!look.filled.some((family) => family !== this.#family)) return await this.#removeAll(signal);
    const own = readLook({ ...look, table: undefined }, { family: this.#family, isKeeper: false });
    this.#lists.adopt(own.objects.values());
    const { steps } = planDelta({ put: [], remove: [...own.objects.values()], lingering: [], nowMs: world.clock.nowMs() });
    await this.apply({ steps: steps.map(({ object }) => ({ verb: "delete", object })) }, signal);
    world.bpf.removePins(join(maps.demandRoot(), maps.folder, filledMark(this.#family)));
    world.bpf.removePins(join(maps.demandRoot(), servingMark(this.#family)));
  }

  /** Filters of clsact are pinned nowhere, so they have to be known to be looked at. */
  async #noteFilters(signal: AbortSignal): Promise<void> {
    const { filtered, packets } = this.#shared;
    if (!this.#isKeeper || !(await packets.support(signal)).byClsact) return;
    filtered.clear();
    for (const key of this.#carriers.active) filtered.add(key);
  }

  async #setTable(isWanted: boolean, signal: AbortSignal): Promise<void> {
    const { packets, serving } = this.#shared;
    const failed = new Map<TableObject, ProxyError>();
    try {
      await (isWanted ? packets.nft.write(signal) : packets.nft.drop());
    } catch (error) {
      if (isWanted && ProxyError.is(error)) failed.set(TABLE_OBJECT, error);
      throw error;
    } finally {
      serving.tried([TABLE_OBJECT], failed);
    }
  }

  /** What this family has written is in force once programs ask for it, which the first family brings to their places. */
  async #serve(family: IPFamily, signal: AbortSignal): Promise<void> {
    const { serving, links, world } = this.#shared;
    if (this.#isKeeper) serving.begin();
    else await serving.demand(world.clock, signal);
    links.markServing(family);
  }

  async #removeAll(signal: AbortSignal): Promise<void> {
    const { maps, world, packets } = this.#shared;
    // Where there is nothing of ours, libbpf need not be there.
    if (maps.root !== undefined && world.pinFiles.exists(maps.root)) world.bpf.removePins(maps.root);
    maps.close();
    await packets.remove(signal);
  }

  async leftovers(isInUse: boolean): Promise<readonly Leftover[]> {
    const { maps, world } = this.#shared;
    return isInUse ? [] : await leaveFamily(this.#family, maps, world, (signal) => this.#removeAll(signal));
  }
}
