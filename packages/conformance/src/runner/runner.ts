import type { Abilities, Clock, Dataplane, IPFamily, NodeSettings, ObjectKind, Plain, ProbedHost, Protocol, World } from "@turnout/core";
import { abilitiesOf, FAMILIES, HIDING_LABELS, OBJECT_KINDS, openDataplane, probeModule, ProxyError, Store } from "@turnout/core";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { RawObject } from "@turnout/core/testing";
import type { FakeHost, HostAddress } from "./fake-host.ts";
import { FamilyProcess } from "./family-process.ts";
import type { SyncReport } from "./family-process.ts";
import type { ObjectRef } from "./scenario.ts";
import { lastingRawNode } from "./lasting-raw-node.ts";
import { fieldAt } from "./probe-packet.ts";
import { HOST_ADDRESSES, STAGE_NODE, UPLINK } from "./stage.ts";
import type { Subject } from "./subject.ts";
import { watchTools } from "./watched-tools.ts";

/** What a player is set up with. */
export interface RunnerOptions {
  readonly settings: NodeSettings;
  /** Addresses of the host besides those of the stage. */
  readonly hostAddresses?: Readonly<Record<IPFamily, readonly string[]>>;
  /** Options for the backend, by name. */
  readonly backendOptions?: Readonly<Record<string, Plain>>;
  /** How long a backend may take for one plan, in ms; default as in production. */
  readonly turnMs?: number;
  /** Default: those the backend has. */
  readonly families?: readonly IPFamily[];
}

/** The longest pause between two looks of a backend that waits for something in a sync. */
const WAIT_IN_SYNC_MS = 100;

/** A host with a backend's processes on it, one per family, and the API objects they are told of. */
export class Runner {
  readonly host: FakeHost;
  /** Called whenever the host's tool has done something for the processes. */
  onToolCall: (() => void) | undefined;
  /** Calls of a tool that may read what the host holds before one fails; undefined: all may. */
  #readsLeft: number | undefined;
  #isSyncing = false;
  /** What the processes get of the host. */
  readonly #hostWorld: World;
  readonly #subject: Subject;
  readonly #options: RunnerOptions;
  readonly #objects = new Map<string, RawObject>();
  /** Every Service ever heard of, by name: probes may name one that is gone. */
  readonly #services = new Map<string, RawObject>();
  readonly #parsed: unknown;
  /** What the processes take the nodes to be, by name. */
  readonly #nodes = new Map<string, RawObject>();
  #store: Store = syncedStore();
  #processes: readonly FamilyProcess[] = [];
  #dataplane: Dataplane | undefined;
  #abilities: Abilities;
  #hostAddresses: Readonly<Record<IPFamily, readonly string[]>>;
  #world: OracleWorld | undefined;

  private constructor(subject: Subject, options: RunnerOptions) {
    this.#abilities = abilitiesOf(subject.module);
    this.#subject = subject;
    this.#options = options;
    this.#parsed = subject.module.parseOptions(options.backendOptions ?? {});
    this.host = subject.createFakeHost();
    this.#hostWorld = watchTools(this.host.world, { look: () => this.onToolCall?.(), failure: () => this.#readFailure() });
    this.host.onChange?.(() => this.onToolCall?.());
    this.#hostAddresses = this.#withExtra(HOST_ADDRESSES);
    this.host.setAddresses(hostLinks(this.#hostAddresses));
  }

  /** Find out what a backend can do on a host of its own, where nothing else is done. @throws whatever the module throws. */
  static async abilitiesOf(subject: Subject, options: RunnerOptions): Promise<Abilities> {
    const runner = new Runner(subject, options);
    await runner.#probe();
    return runner.#abilities;
  }

  /** Set the stage and start the processes; nothing is synced yet. @throws whatever the module throws. */
  static async start(subject: Subject, options: RunnerOptions, objects: Iterable<RawObject>): Promise<Runner> {
    const runner = new Runner(subject, options);
    for (const raw of objects) runner.put(raw);
    await runner.#startProcesses();
    return runner;
  }

  get processes(): readonly FamilyProcess[] {
    return this.#processes;
  }

  /** What the backend can do on this host. */
  get abilities(): Abilities {
    return this.#abilities;
  }

  get services(): ReadonlyMap<string, RawObject> {
    return this.#services;
  }

  /** The objects that count now: those that exist, and the nodes as they are taken to be. */
  get objects(): readonly RawObject[] {
    return [...this.#nodes.values(), ...[...this.#objects.values()].filter((raw) => refOf(raw).kind !== "Node")];
  }

  /** Everything that decides packets, for the oracle; another object after every change. */
  get world(): OracleWorld {
    const { module } = this.#subject;
    this.#world ??= {
      objects: this.objects,
      nodeName: STAGE_NODE,
      settings: this.#options.settings,
      hostAddresses: this.#hostAddresses,
      nodePortAddressesDefault: module.nodePortAddressesDefault ?? [],
      ...this.#abilities,
    };
    return this.#world;
  }

  put(raw: RawObject): void {
    const ref = refOf(raw);
    if (ref.kind === "Service") this.#services.set(ref.name, raw);
    this.#objects.set(refKey(ref), raw);
    if (ref.kind === "Node") this.#noteNode(ref.name, raw);
    this.#world = undefined;
    feed(this.#store, ref, raw);
  }

  remove(ref: ObjectRef): void {
    this.#objects.delete(refKey(ref));
    this.#world = undefined;
    this.#store.remove(ref.kind, ref.namespace, ref.name);
  }

  /** Give the host other addresses, and the processes the facts they would hear of. */
  async setHostAddresses(addresses: Readonly<Record<IPFamily, readonly string[]>>): Promise<void> {
    const facts = await this.moveHost(addresses);
    for (const life of this.#processes) life.setFacts(facts);
  }

  /** Give the host other addresses, without a word to the processes; resolves to what a probe says of it now. */
  async moveHost(addresses: Readonly<Record<IPFamily, readonly string[]>>): Promise<unknown> {
    this.#hostAddresses = this.#withExtra(addresses);
    this.#world = undefined;
    this.host.setAddresses(hostLinks(this.#hostAddresses));
    return await this.#probe();
  }

  /** Have one call of a tool fail while a backend reads what the host holds: after so many that succeed; undefined: none. */
  failReading(afterCalls: number | undefined): void {
    this.#readsLeft = afterCalls;
  }

  /** Whether a reading is still to fail. */
  get willFailReading(): boolean {
    return this.#readsLeft !== undefined;
  }

  #readFailure(): ProxyError | undefined {
    if (this.#readsLeft === undefined || !this.#processes.some(({ notes }) => notes.isReading)) return undefined;
    if (this.#readsLeft-- > 0) return undefined;
    this.#readsLeft = undefined;
    return new ProxyError("timed_out", "the conformance kit has this reading fail");
  }

  /** Sync every family once. */
  async sync(): Promise<readonly (SyncReport & { readonly life: FamilyProcess })[]> {
    const reports = [];
    for (const life of this.#processes) {
      this.#isSyncing = true;
      reports.push({ ...(await life.sync()), life });
      this.#isSyncing = false;
    }
    return reports;
  }

  /** A backend that waits in a sync, e.g. for its other family, would wait for ever: nobody else lets time pass then. Who sleeps long does so beside the sync. */
  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const slept = this.host.world.clock.sleep(ms, signal);
    if (!this.#isSyncing || ms > WAIT_IN_SYNC_MS) return slept;
    return Promise.all([slept, this.host.advance(ms)]).then(() => undefined);
  }

  /** Let the processes end (cleanly, if they haven't been killed) and start new ones, which hear of everything anew. */
  async restart(): Promise<void> {
    const lingering = new Map(this.#processes.map(({ family, notes }) => [family, notes.lingering]));
    await this.close();
    this.#store = syncedStore();
    // What a Node object said before is known to nobody any more.
    this.#nodes.clear();
    this.#world = undefined;
    for (const raw of this.#objects.values()) {
      const ref = refOf(raw);
      if (ref.kind === "Node") this.#noteNode(ref.name, raw);
      feed(this.#store, ref, raw);
    }
    await this.#startProcesses();
    for (const { family, notes } of this.#processes) notes.lingering = lingering.get(family) ?? new Set();
  }

  #noteNode(name: string, raw: RawObject): void {
    const lasting = lastingRawNode(this.#nodes.get(name), raw);
    if (lasting !== undefined) this.#nodes.set(name, lasting);
  }

  async close(): Promise<void> {
    for (const life of this.#processes) life.close();
    this.#processes = [];
    const dataplane = this.#dataplane;
    this.#dataplane = undefined;
    await dataplane?.close(new AbortController().signal);
  }

  async #startProcesses(): Promise<void> {
    const facts = await this.#probe();
    const { capabilities } = this.#abilities;
    const { clock } = this.#hostWorld;
    const waiting: Clock = { nowMs: () => clock.nowMs(), sleep: (ms, signal) => this.#sleep(ms, signal) };
    const world = { ...this.#hostWorld, clock: waiting };
    const dataplane = await openDataplane(this.#subject.module, this.#parsed, world, new AbortController().signal);
    this.#dataplane = dataplane;
    const common = {
      subject: this.#subject,
      options: this.#parsed,
      world: this.#hostWorld,
      store: this.#store,
      dataplane,
      facts,
      capabilities,
      turnMs: this.#options.turnMs,
    };
    this.#processes = (this.#options.families ?? FAMILIES)
      .filter((family) => capabilities[family] === true)
      .map((family) => new FamilyProcess({ ...common, family, settings: this.#options.settings }));
  }

  /** Look at the host as it is now; resolves to its facts. */
  async #probe(): Promise<unknown> {
    const { signal } = new AbortController();
    const probed: ProbedHost<unknown> = await probeModule(this.#subject.module, this.#parsed, this.#hostWorld, signal);
    const { facts, problems, capabilities, variants } = probed;
    for (const problem of problems) throw problem;
    this.#abilities = { capabilities, variants };
    return facts;
  }

  #withExtra(addresses: Readonly<Record<IPFamily, readonly string[]>>): Readonly<Record<IPFamily, readonly string[]>> {
    const { hostAddresses } = this.#options;
    return {
      IPv4: [...addresses.IPv4, ...(hostAddresses?.IPv4 ?? [])],
      IPv6: [...addresses.IPv6, ...(hostAddresses?.IPv6 ?? [])],
    };
  }
}

/** Protocols a backend has. */
export function protocolsOf({ capabilities }: Abilities, wanted: readonly Protocol[]): readonly Protocol[] {
  return wanted.filter((protocol) => capabilities[protocol] === true);
}

function syncedStore(): Store {
  const store = new Store();
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  return store;
}

function feed(store: Store, { kind, namespace, name }: ObjectRef, raw: RawObject): void {
  if (isHidden(kind, raw)) store.remove(kind, namespace, name);
  else store.upsert(kind, raw);
}

/** No source tells of such objects. */
function isHidden(kind: ObjectKind, { metadata }: RawObject): boolean {
  const label = HIDING_LABELS[kind];
  return label !== undefined && fieldAt(metadata, "labels", label) !== undefined;
}

/** Name an API object by what it says of itself, however malformed the rest is. */
export function refOf(raw: RawObject): ObjectRef {
  const kind = raw["kind"] as ObjectKind;
  const isOfCluster = kind === "Node" || kind === "ServiceCIDR";
  return { kind, namespace: isOfCluster ? "" : textOf(raw, "namespace"), name: textOf(raw, "name") };
}

/** The same as one text. */
export function refKey({ kind, namespace, name }: ObjectRef): string {
  return `${kind} ${namespace}/${name}`;
}

function textOf({ metadata }: RawObject, name: string): string {
  const text = fieldAt(metadata, name);
  return typeof text === "string" ? text : "";
}

/** Loopback addresses are on lo, all others on the uplink. */
function hostLinks(addresses: Readonly<Record<IPFamily, readonly string[]>>): readonly HostAddress[] {
  return FAMILIES.flatMap((family) =>
    addresses[family].map((ip) => {
      const isLoopback = ip === "::1" || ip.startsWith("127.");
      const full = family === "IPv4" ? 32 : 128;
      return { ip, prefixLength: isLoopback ? (family === "IPv4" ? 8 : 128) : full, link: isLoopback ? "lo" : UPLINK };
    }),
  );
}
