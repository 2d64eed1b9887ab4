import { cleanUpBackend, NodeView, objectId, openDataplane, SyncLoop, WantedRows } from "@turnout/core";
import type {
  Backend,
  Capabilities,
  ChangeSet,
  Counts,
  Dataplane,
  FlowFilter,
  HostEvent,
  IPFamily,
  KernelObject,
  Leftover,
  LeftObjects,
  Log,
  NodeSettings,
  Store,
  SyncedEvent,
  SyncObserver,
  World,
} from "@turnout/core";
import { STAGE_NODE } from "./stage.ts";
import type { Subject } from "./subject.ts";
import { BackendNotes, deltaText, watchBackend } from "./watched-backend.ts";

/** What a family's process is started with. */
export interface FamilyProcessOptions {
  readonly subject: Subject;
  /** Of the process: that of all its families. */
  readonly dataplane: Dataplane;
  readonly options: unknown;
  readonly family: IPFamily;
  readonly world: World;
  readonly store: Store;
  readonly settings: NodeSettings;
  readonly facts: unknown;
  /** What the backend can do on this host. */
  readonly capabilities: Capabilities;
  /** How long a backend may take for one plan; default as in production. */
  readonly turnMs?: number | undefined;
}

/** How one sync went. */
export interface SyncReport {
  readonly put: number;
  readonly removed: number;
  readonly error?: unknown;
}

/** The host can't be compared with what is wanted in under ten years. */
const NEVER_MS = 10 * 365 * 86_400_000;
const DEFECT = "the backend wants one object in two forms";

/** One life of the process that keeps one family in step, as in production but for its timing: it syncs when told to. */
export class FamilyProcess {
  readonly family: IPFamily;
  readonly notes: BackendNotes = new BackendNotes();
  /** Objects that were wanted in two forms at once. */
  readonly defects: string[] = [];
  readonly #inner: Backend<unknown, KernelObject, unknown>;
  readonly #loop: SyncLoop<unknown, KernelObject, unknown>;
  readonly #view: NodeView;
  readonly #options: FamilyProcessOptions;
  readonly #life = new AbortController();
  #facts: unknown;
  #last: Pick<SyncedEvent, "put" | "removed"> = { put: 0, removed: 0 };

  /** Start a process on a host. @throws whatever the dataplane's `family` throws. */
  constructor(options: FamilyProcessOptions) {
    const { family, store, settings, world, dataplane, facts, capabilities, turnMs } = options;
    const inner = dataplane.family(family);
    this.#options = options;
    this.#inner = inner;
    this.#facts = facts;
    this.family = family;
    this.#view = new NodeView(store, { nodeName: STAGE_NODE, family, settings });
    const { clock } = world;
    this.#loop = new SyncLoop({
      backend: watchBackend(inner, this.notes),
      feed: { next: () => Promise.resolve(this.#view.pull() ?? nothingNew(family)) },
      family,
      host: facts,
      clock,
      log: this.#log(),
      observer: this.#observer(),
      minIntervalMs: 0,
      maxIntervalMs: NEVER_MS,
      retryMs: 1000,
      capabilities,
      ...(turnMs === undefined ? {} : { turnMs }),
    });
  }

  /** Sync once, and wait until flows are forgotten. Never throws. */
  async sync(): Promise<SyncReport> {
    this.#last = { put: 0, removed: 0 };
    try {
      await this.#loop.once(this.#life.signal);
      return this.#last;
    } catch (error) {
      return { ...this.#last, error };
    }
  }

  /** Have connections forgotten, but take it back before it has begun; however that ends. */
  async forgetInVain(flows: readonly FlowFilter[]): Promise<void> {
    await Promise.allSettled([Promise.resolve().then(() => this.#inner.forgetFlows?.(flows, AbortSignal.abort()))]);
  }

  /** What the host holds, by observing. @throws whatever the backend throws. */
  async observed(): Promise<readonly KernelObject[]> {
    return [...((await this.held())?.values() ?? [])];
  }

  /** The same by {@link objectId}; undefined where that can't be told. @throws whatever the backend throws. */
  async held(): Promise<ReadonlyMap<string, KernelObject> | undefined> {
    return (await this.#inner.observe(this.#life.signal))?.objects;
  }

  /** Whether it counts. */
  get countsObjects(): boolean {
    return this.#inner.counts !== undefined;
  }

  /** What it counted, by objects; nothing where it doesn't. @throws whatever the backend throws. */
  async counts(): Promise<ReadonlyMap<string, Counts>> {
    const owners = this.owners();
    return (await this.#inner.counts?.(this.#life.signal, (object) => owners.has(object))) ?? new Map<string, Counts>();
  }

  /** The Service, as `namespace/name`, that owns each object, by {@link objectId} (one of them, where several do). */
  owners(): ReadonlyMap<string, string> {
    const { node, rows } = this.#loop;
    if (node === undefined) return new Map();
    const context = { node, host: this.#facts };
    return new Map(
      [...rows.values()].flatMap((row) =>
        this.#inner.render(row, context).map((object) => [objectId(object), `${row.name.namespace}/${row.name.name}`] as const),
      ),
    );
  }

  /** Have the next sync mend what somebody left, without comparing. */
  fix(left: LeftObjects): void {
    this.#loop.fix(left);
  }

  /** Of some objects what looking them up says otherwise than observing; "" where that is nothing, or nobody looks up. @throws whatever the backend throws. */
  async lookupDifference(asked: readonly KernelObject[]): Promise<string> {
    const { signal } = this.#life;
    // What can't be read can't be looked up either.
    const [lookup, look] = await Promise.allSettled([this.#inner.lookup?.(asked, signal), this.#inner.observe(signal)]);
    if (look.status === "rejected") return "";
    if (lookup.status === "rejected") throw lookup.reason;
    const [looked, observed] = [lookup.value, look.value];
    if (looked === undefined || observed === undefined) return "";
    const texts = asked.map((object) => {
      const [a, b] = [looked, observed.objects].map((found) => JSON.stringify(found.get(objectId(object))?.value) ?? "nothing");
      return a === b ? "" : `${objectId(object)}: ${a} instead of ${b}`;
    });
    return texts.find((text) => text !== "") ?? "";
  }

  /** Whether the backend has a watch. */
  get watches(): boolean {
    return this.#inner.watch !== undefined;
  }

  /** Whether it says that its watch tells of what others do. */
  get reportsDrift(): boolean {
    return this.#inner.reportsDrift === true;
  }

  /** What the backend's watch tells; nothing where it has none. */
  watch(signal: AbortSignal): AsyncIterable<HostEvent<unknown>> {
    return this.#inner.watch?.(signal) ?? nothing();
  }

  /** Have the next sync compare everything with the host. */
  audit(): void {
    this.#loop.audit();
  }

  /** What it was told of the host last. */
  get facts(): unknown {
    return this.#facts;
  }

  setFacts(facts: unknown): void {
    this.#facts = facts;
    this.#loop.setHost(facts);
  }

  /** Whether it has been killed. */
  get isDead(): boolean {
    return this.#life.signal.aborted;
  }

  /** End at once, in the middle of whatever it does. */
  kill(): void {
    this.#life.abort();
    this.#view.close();
  }

  /** Hear of nothing more. */
  close(): void {
    this.#view.close();
  }

  /**
   * What a process that starts now would change; "" when nothing, or when that can't be told.
   *
   * Edges: what this one knows to linger may be removed sooner.
   */
  async unrecognised(): Promise<string> {
    const { node, rows } = this.#loop;
    if (node === undefined || this.#options.subject.module.residence === "process") return "";
    const { fresh, observed } = await this.#asNewborn(async (backend) => {
      const wanted = new WantedRows(backend, this.#facts, {});
      wanted.accept({ ...nothingNew(this.family), full: true, node, set: [...rows.values()] });
      return { fresh: wanted, observed: await backend.observe(this.#life.signal) };
    });
    this.defects.push(...fresh.ledger.defects);
    if (observed === undefined) return "";
    fresh.ledger.adopt(observed);
    const { put, remove } = fresh.ledger.delta(this.#options.world.clock.nowMs());
    return deltaText({ put, remove: remove.filter((object) => !this.notes.lingering.has(objectId(object))) });
  }

  /** Remove everything as `turnout cleanup` does, with a new process: by the backend's own way, or else all that it observes. */
  async cleanUp(): Promise<void> {
    const { clock } = this.#options.world;
    await this.#asNewborn((backend, signal) => cleanUpBackend(backend, clock, signal));
  }

  /** Remove what the backend takes for leftovers, with a new process, and tell of it; undefined where it never has any. */
  async clearLeftovers(isInUse: boolean): Promise<readonly Leftover[] | undefined> {
    return await this.#asNewborn(async (backend, signal) => {
      const leftovers = await backend.leftovers?.(isInUse, signal);
      for (const { remove } of leftovers ?? []) await remove(signal);
      return leftovers;
    });
  }

  /** Work with the backend of another process, which starts on this host and ends. */
  async #asNewborn<T>(work: (backend: Backend<unknown, KernelObject, unknown>, signal: AbortSignal) => Promise<T>): Promise<T> {
    const { subject, options, world } = this.#options;
    const { signal } = new AbortController();
    const dataplane = await openDataplane(subject.module, options, world, signal);
    const result = await work(dataplane.family(this.family), signal);
    await dataplane.close(signal);
    return result;
  }

  #observer(): SyncObserver {
    return {
      queued: () => undefined,
      synced: ({ put, removed }) => void (this.#last = { put: this.#last.put + put, removed: this.#last.removed + removed }),
      failed: () => undefined,
      flowsForgotten: () => undefined,
      quarantined: () => undefined,
    };
  }

  #log(): Log {
    return {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (message, fields) => void (message === DEFECT && this.defects.push(String(fields?.["object"]))),
    };
  }
}

async function* nothing(): AsyncIterable<never> {}

function nothingNew(family: IPFamily): ChangeSet {
  return { instance: "kit", revision: 0, family, full: false, set: [], delete: [], triggersMs: [] };
}
