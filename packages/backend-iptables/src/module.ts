import type {
  Backend,
  BackendMetric,
  BackendModule,
  Counts,
  Dataplane,
  FlowFilter,
  HostEvent,
  IPFamily,
  Leftover,
  ObjectWords,
  Observed,
  Outcome,
  Plan,
} from "@turnout/core/backend";
import { ALL_CAPABILITIES, objectId } from "@turnout/core/backend";
import type { CommitMark, LinuxWorld, FingerprintWatch } from "@turnout/host";
import { EchoCount, OwnCommits, readParameter } from "@turnout/host";
import { IptablesTool, legacyFingerprints, lookupIn } from "@turnout/host/iptables";
import type { IptablesLookup } from "@turnout/host/iptables";
import { placeOf } from "@turnout/host/iptables/text";
import type { TableName } from "@turnout/host/iptables/text";
import { Applier } from "./apply.ts";
import { otherRulesThan } from "./other-rules.ts";
import { canCount, COUNTERS, counterMetrics } from "./counters.ts";
import { describeObject } from "./describe.ts";
import { ROUTE_LOCALNET } from "./layout.ts";
import { parseCounts } from "./counts.ts";
import { Leaver } from "./leaver.ts";
import type { IptablesObject } from "./objects.ts";
import { answersOnLoopback, parseSaved } from "./observe.ts";
import { IPTABLES_OPTIONS, parseIptablesOptions } from "./options.ts";
import type { IptablesFacts, IptablesOptions } from "./options.ts";
import { iptablesMetrics } from "./metrics.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { probeIptables } from "./probe.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { watchHost } from "./watch.ts";
import { createIptablesWorld } from "./world.ts";
import type { IptablesWorld } from "./world.ts";

/** The iptables dataplane as a backend module. */
export const iptablesModule: BackendModule<IptablesOptions, IptablesFacts, IptablesObject, Step, IptablesWorld> = {
  name: "iptables",
  contract: 2,
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
  variants: {
    undefinedClusterIPPort: "pass",
    unallocatedClusterIP: "pass",
    nodePortRejectScope: "anyLocalAddress",
    rejectFromHost: false,
    blockedWithoutEndpoints: "reject",
    affinityScope: "row",
    nodePortsOnLoopback: "IPv4",
  },
  // A change costs the legacy tool the whole table (2 s at 50,000), and loading costs the nft variant the square of it (5 s at 10,000).
  serviceEntriesMax: 20_000,
  countingOptions: {},
  rights: {
    CAP_NET_ADMIN: "program iptables and forget flows",
    CAP_NET_RAW: "program legacy iptables",
  },
  createWorld: createIptablesWorld,
  options: IPTABLES_OPTIONS,
  parseOptions: parseIptablesOptions,
  probe: probeIptables,
  open: (options, world) => Promise.resolve(openDataplane(options, world)),
};

function openDataplane(options: IptablesOptions, world: IptablesWorld): Dataplane<IptablesFacts, IptablesObject, Step> {
  const own = new OwnCommits();
  const lookup = lookupIn(world, options.variant);
  return { family: (family) => new IptablesBackend({ options, family, world, own, lookup }), close: () => Promise.resolve() };
}

interface FamilyParts {
  readonly options: IptablesOptions;
  readonly family: IPFamily;
  readonly world: LinuxWorld;
  readonly own: OwnCommits;
  readonly lookup: IptablesLookup;
}

class IptablesBackend implements Backend<IptablesFacts, IptablesObject, Step> {
  readonly #options: IptablesOptions;
  readonly #family: IPFamily;
  readonly #world: LinuxWorld;
  readonly #own: OwnCommits;
  readonly #tool: IptablesTool;
  readonly #echoes = new EchoCount();
  readonly #fingerprints: FingerprintWatch;
  readonly #applier: Applier;
  readonly #leaver: Leaver;
  /** When the host was last looked at; undefined: never, or by a variant that tells nothing. */
  #mark: CommitMark | undefined;

  constructor({ options, family, world, own, lookup }: FamilyParts) {
    this.#own = own;
    this.#options = options;
    this.#family = family;
    this.#world = world;
    this.#tool = new IptablesTool(world, family, lookup);
    this.#fingerprints = legacyFingerprints({ family, clock: world.clock, tool: this.#tool, netlink: world.netlink });
    this.#applier = new Applier(this.#tool, { own, echoes: this.#echoes, fingerprints: this.#fingerprints }, world);
    this.#leaver = new Leaver({ family, world, own, echoes: this.#echoes });
  }

  /** The kernel tells of commits of the nft variant. Of the legacy variant it tells nothing, and before the first look nobody knows which it is. */
  get reportsDrift(): boolean {
    return this.#tool.variant === "nft";
  }

  skeleton(context: Parameters<typeof renderSkeleton>[0]): readonly IptablesObject[] {
    return renderSkeleton(context, this.#options);
  }

  render(row: Parameters<typeof renderRow>[0], context: Parameters<typeof renderRow>[1]): readonly IptablesObject[] {
    return renderRow(row, context, this.#options);
  }

  plan(delta: Parameters<typeof planDelta>[0]): Plan<Step> {
    return planDelta(delta);
  }

  explain(plan: Plan<Step>): string {
    return explainPlan(plan);
  }

  async observe(signal: AbortSignal): Promise<Observed<IptablesObject>> {
    const { netlink } = this.#world;
    const isReported = (await this.#tool.choice(signal)).variant === "nft";
    this.#mark = isReported ? await this.#own.mark(netlink) : undefined;
    const objects = await this.#look(signal);
    this.#applier.looked(objects.values());
    return { objects, lingering: [] };
  }

  async lookup(objects: readonly IptablesObject[], signal: AbortSignal): Promise<ReadonlyMap<string, IptablesObject>> {
    const tool = this.#tool;
    const chainsOf = (table: TableName): readonly string[] => {
      const places = objects.filter(({ kind }) => kind !== "sysctl" && kind !== "counter").map(placeOf);
      return [...new Set(places.filter((place) => place.table === table).map(({ chain }) => chain))];
    };
    const saved = await tool.saveChains({ filter: chainsOf("filter"), nat: chainsOf("nat"), mangle: chainsOf("mangle") }, signal);
    const found = new Map([...parseSaved(saved, this.#family, true), ...(await this.#counters())]);
    if (objects.some(({ kind }) => kind === "sysctl")) {
      const value = (await readParameter(this.#world.exec, ROUTE_LOCALNET, signal)) ?? "";
      found.set(`sysctl ${ROUTE_LOCALNET}`, { kind: "sysctl", key: ROUTE_LOCALNET, value });
    }
    const ids = new Set(objects.map(objectId));
    const isOther = otherRulesThan(objects);
    return new Map([...found].filter(([id, object]) => ids.has(id) || isOther(object)));
  }

  isWayIn({ kind, key }: IptablesObject, device: string): boolean {
    return kind === "jumps" && key === `nat ${device === "" ? "OUTPUT" : "PREROUTING"}`;
  }

  describe(object: IptablesObject, held?: IptablesObject): ObjectWords {
    return describeObject(object, this.#family, held);
  }

  apply(plan: Plan<Step>, signal: AbortSignal): Promise<Outcome<IptablesObject>> {
    return this.#applier.apply(plan, signal);
  }

  forgetFlows(flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
    return this.#world.netlink.deleteFlows(this.#family, flows, signal);
  }

  async metrics(): Promise<readonly BackendMetric[]> {
    return [...iptablesMetrics(this.#applier.numbers, this.#tool.waits), ...(await counterMetrics(this.#world.netlink))];
  }

  /** The kernel counts what each rule matches; nothing is written for it. Listing takes as long as looking at the host does. */
  async counts(signal: AbortSignal): Promise<ReadonlyMap<string, Counts>> {
    const [nat, filter] = await Promise.all([this.#tool.saveCounted("nat", signal), this.#tool.saveCounted("filter", signal)]);
    return parseCounts(nat, filter, this.#family);
  }

  watch(signal: AbortSignal): AsyncIterable<HostEvent<IptablesFacts>> {
    return watchHost(
      {
        world: this.#world,
        family: this.#family,
        own: this.#own,
        tool: this.#tool,
        echoes: this.#echoes,
        fingerprints: this.#fingerprints,
        mark: this.#mark,
        hasGuard: this.#hasGuard,
      },
      signal,
    );
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    try {
      await this.#leaver.removeAll(signal);
    } finally {
      const { netlink } = this.#world;
      // The last family to be removed deletes them: the rules of the other one use them as well.
      if (await canCount(netlink)) for (const name of Object.values(COUNTERS)) await netlink.deleteCounter(name);
    }
  }

  /** kube-proxy's chains are ours as well, so in the variant in use nothing is left over: what is there was adopted. */
  async leftovers(isInUse: boolean, signal: AbortSignal): Promise<readonly Leftover[]> {
    return await this.#leaver.leftovers(isInUse ? (await this.#tool.choice(signal)).variant : undefined, signal);
  }

  get #hasGuard(): boolean {
    return this.#family === "IPv4" && this.#options.localhostNodePorts;
  }

  async #look(signal: AbortSignal): Promise<ReadonlyMap<string, IptablesObject>> {
    const tool = this.#tool;
    const hasGuard = this.#hasGuard;
    const found = new Map([...parseSaved(await tool.saveAll(signal), this.#family, hasGuard), ...(await this.#counters())]);
    if (!hasGuard || !answersOnLoopback(found)) return found;
    const value = (await readParameter(this.#world.exec, ROUTE_LOCALNET, signal)) ?? "";
    return new Map([...found, [`sysctl ${ROUTE_LOCALNET}`, { kind: "sysctl", key: ROUTE_LOCALNET, value }]]);
  }

  /** The counters that are there. */
  async #counters(): Promise<readonly (readonly [string, IptablesObject])[]> {
    const { netlink } = this.#world;
    if (!(await canCount(netlink))) return [];
    const found: (readonly [string, IptablesObject])[] = [];
    for (const key of Object.values(COUNTERS)) {
      if ((await netlink.counterPackets(key)) !== undefined) found.push([`counter ${key}`, { kind: "counter", key, value: true }]);
    }
    return found;
  }
}
