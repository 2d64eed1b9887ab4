// A proxy as it will be: the module, a sync loop for each family, a store that is changed. In the namespaces and the cgroup of a test.
import { setTimeout as sleep } from "node:timers/promises";
import { createFeed, isEqual, NodeView, openDataplane, probeModule, Store, SyncLoop } from "@turnout/core";
import type { Backend, BackendMetric, Dataplane, IPFamily, ObjectKind, Plain, SyncedEvent } from "@turnout/core";
import { FAMILIES, ProxyError } from "@turnout/core/backend";
import { systemClock } from "@turnout/core/process";
import { RecordingLog, replacing, upsertRaw } from "@turnout/core/testing";
import type { RawObject, ServiceFixture } from "@turnout/core/testing";
import { createExec } from "@turnout/host";
import { ebpfModule } from "../module.ts";
import type { EbpfObject } from "../objects.ts";
import type { EbpfFacts } from "../options.ts";
import type { Step } from "../plan.ts";
import { createEbpfWorld } from "../world.ts";
import type { EbpfWorld } from "../world.ts";
import { objectsOf, SETTINGS } from "./states.ts";

/** Small maps: those of programs alone take their memory at once. */
export const SMALL: Readonly<Record<string, Plain>> = {
  "max-services": 1024,
  "max-endpoints": 4096,
  "max-ranges": 1024,
  "max-affinity": 1024,
  "max-sockets": 1024,
};

/** How a daemon is started. */
export interface DaemonOptions {
  readonly cgroup: string;
  readonly objectFile: string;
  /** The programs of packets; undefined: as they were built. */
  readonly packetsFile?: string;
  /** The kernel has no tcx. */
  readonly byClsact?: boolean;
  readonly options?: Readonly<Record<string, Plain>>;
  readonly families?: readonly IPFamily[];
  /** Make another world of this host's. */
  readonly alter?: (world: EbpfWorld) => EbpfWorld;
  /** Families whose API objects don't come yet. */
  readonly mute?: readonly IPFamily[];
  /** Nobody follows what the backend tells of the host: all that is found is found by comparing. */
  readonly isUnwatched?: boolean;
}

const SETTINGS_OF_TEST = { ...SETTINGS, nodePortAddresses: undefined };
const ALL_KINDS: readonly ObjectKind[] = ["Node", "ServiceCIDR", "Service", "EndpointSlice"];

/** One family of a daemon. */
interface Running {
  readonly family: IPFamily;
  readonly store: Store;
  readonly loop: SyncLoop<EbpfFacts, EbpfObject, Step>;
  readonly backend: Backend<EbpfFacts, EbpfObject, Step>;
}

/** A running proxy. */
export class Daemon {
  readonly log: RecordingLog;
  readonly synced: SyncedEvent[] = [];
  /** Objects that the host refuses now. */
  refused: readonly string[] = [];
  /** How many sockets were ended. */
  forgotten = 0;
  readonly world: EbpfWorld;
  readonly #families: Running[] = [];
  readonly #mute: Set<IPFamily>;
  readonly #stop = new AbortController();
  readonly #dataplane: Dataplane<EbpfFacts, EbpfObject, Step>;
  #fixtures: readonly ServiceFixture[] = [];
  #done: Promise<unknown> = Promise.resolve();

  private constructor(log: RecordingLog, world: EbpfWorld, dataplane: Dataplane<EbpfFacts, EbpfObject, Step>, mute: Iterable<IPFamily>) {
    this.log = log;
    this.world = world;
    this.#dataplane = dataplane;
    this.#mute = new Set(mute);
  }

  /** Start, with a source that has said nothing yet. */
  static async start({
    cgroup,
    objectFile,
    packetsFile,
    byClsact = false,
    options = {},
    families = FAMILIES,
    mute = [],
    isUnwatched = false,
    alter = (one) => one,
  }: DaemonOptions): Promise<Daemon> {
    const log = new RecordingLog();
    const real = createEbpfWorld({ exec: createExec(), clock: systemClock(), log });
    const altered = alter({ ...real, objectFiles: { sockets: objectFile, packets: packetsFile ?? real.objectFiles.packets } });
    const world = byClsact ? withoutTcx(altered) : altered;
    const parsed = ebpfModule.parseOptions({ ...SMALL, ...ebpfModule.countingOptions, cgroup, ...options });
    const { signal } = new AbortController();
    const { facts, problems, capabilities } = await probeModule(ebpfModule, parsed, world, signal);
    if (problems[0] !== undefined) throw problems[0];
    const dataplane = await openDataplane(ebpfModule, parsed, world, signal);
    const daemon = new Daemon(log, world, dataplane, mute);
    const backends = families.map((family) => ({ family, backend: dataplane.family(family) }));
    for (const { family, backend } of backends) {
      const store = new Store();
      const loop = new SyncLoop<EbpfFacts, EbpfObject, Step>({
        backend,
        family,
        capabilities,
        host: facts,
        feed: createFeed(store, { nodeName: "node1", family, settings: SETTINGS_OF_TEST }),
        clock: world.clock,
        log,
        minIntervalMs: 0,
        maxIntervalMs: 3_600_000,
        retryMs: 2_000,
        observer: {
          queued: () => undefined,
          synced: (event) => daemon.synced.push(event),
          failed: () => undefined,
          flowsForgotten: ({ count }) => (daemon.forgotten += count),
          quarantined: ({ objects }) => (daemon.refused = objects),
        },
      });
      daemon.#families.push({ family, store, loop, backend });
      if (!isUnwatched) void follow(backend.watch?.(daemon.#stop.signal), loop);
    }
    daemon.#done = Promise.all(daemon.#families.map(({ loop }) => loop.run(daemon.#stop.signal)));
    return daemon;
  }

  /** Have the API say this, and wait until it is in force. */
  async want(fixtures: readonly ServiceFixture[]): Promise<void> {
    const before = this.#fixtures;
    this.#fixtures = fixtures;
    for (const running of this.#families) if (!this.#mute.has(running.family)) notify(running.store, before, fixtures);
    await this.settled();
  }

  /** A family's API objects come at last. */
  unmute(family: IPFamily): void {
    this.#mute.delete(family);
    for (const running of this.#families) if (running.family === family) notify(running.store, [], this.#fixtures);
  }

  /** Wait until what was told is in force. */
  async settled(): Promise<void> {
    for (const running of this.#families)
      while (!this.#mute.has(running.family) && !isSettled(running)) await Promise.race([sleep(5), this.#failure()]);
  }

  /** Compare everything with the host, and repair it. */
  async audit(): Promise<void> {
    const before = this.synced.length;
    for (const { loop } of this.#families) loop.audit();
    while (this.synced.length < before + this.#families.length) await Promise.race([sleep(5), this.#failure()]);
  }

  /** How many objects were written and removed since this was asked last. */
  written(): number {
    return this.synced.splice(0).reduce((sum, { put, removed }) => sum + put + removed, 0);
  }

  /** Numbers other than 0 of rows. */
  async counted(): Promise<Readonly<Record<string, number>>> {
    const { signal } = this.#stop;
    const found: (readonly [string, number])[] = [];
    for (const { family, loop, backend } of this.#families) {
      const read = await backend.counts?.(signal, (id) => loop.ownersOf(id).size > 0);
      for (const [id, counts] of read ?? [])
        for (const [name, value] of Object.entries(counts)) found.push([`${name} ${[...loop.ownersOf(id)].join()} ${family}`, value]);
    }
    return Object.fromEntries(found);
  }

  /** A family's backend. */
  backend(family: IPFamily): Backend<EbpfFacts, EbpfObject, Step> {
    return this.#dataplane.family(family);
  }

  /** All metrics of a family. */
  metrics(family: IPFamily): readonly BackendMetric[] {
    return (this.#families.find((one) => one.family === family)?.backend.metrics?.() ?? []) as readonly BackendMetric[];
  }

  /** What it warns of, in words. */
  get complaints(): readonly string[] {
    return this.log.lines
      .filter(({ level }) => level !== "info" && level !== "debug")
      .map(({ message, fields }) => `${message}: ${String(fields["error"])}`);
  }

  /** What objects of the host failed with, as told in the log; each once. */
  get failures(): readonly string[] {
    return [
      ...new Set(
        this.log.lines.filter(({ level }) => level === "error").map(({ fields }) => `${textOf(fields["rows"])} ${textOf(fields["error"])}`),
      ),
    ].toSorted();
  }

  /** End this proxy as `turnout run` does; what is in the kernel stays. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
    await this.#dataplane.close(new AbortController().signal);
  }

  /** Remove everything, by each family as `turnout cleanup` does. */
  async cleanUp(): Promise<void> {
    await this.stop();
    for (const family of FAMILIES) await this.#dataplane.family(family).cleanup?.(new AbortController().signal);
  }

  /** Rejects when a loop has ended with a defect. */
  #failure(): Promise<void> {
    return this.#done.then(() => Promise.reject(new Error("a sync loop has ended")));
  }
}

/** A kernel before Linux 6.6. */
function withoutTcx(world: EbpfWorld): EbpfWorld {
  return {
    ...world,
    bpf: replacing(world.bpf, { attachTc: (...args) => ({ kind: "clsact", filter: world.bpf.attachClsact(...args) }) }),
    async probeBpf() {
      const probe = await world.probeBpf();
      return { ...probe, missing: new Map([...probe.missing, ["tcx", new ProxyError("host_unsupported", "no tcx")]]) };
    },
  };
}

function textOf(field: unknown): string {
  return typeof field === "string" ? field : "";
}

async function follow(
  events: AsyncIterable<{ readonly kind: string; readonly facts?: EbpfFacts }> | undefined,
  loop: SyncLoop<EbpfFacts, EbpfObject, Step>,
): Promise<void> {
  for await (const event of events ?? []) {
    if (event.facts !== undefined) loop.setHost(event.facts);
    else loop.audit();
  }
}

function notify(store: Store, before: readonly ServiceFixture[], after: readonly ServiceFixture[]): void {
  const objects = objectsOf(after);
  for (const object of objects) upsertRaw(store, object);
  const names = new Set(objects.map(keyOf));
  for (const object of objectsOf(before)) {
    const { kind, namespace, name } = refOf(object);
    if (!names.has(keyOf(object))) store.remove(kind, namespace, name);
  }
  for (const kind of ALL_KINDS) store.markSynced(kind);
}

function refOf({ kind, metadata }: RawObject): { readonly kind: ObjectKind; readonly namespace: string; readonly name: string } {
  const { namespace = "", name = "" } = metadata as { readonly namespace?: string; readonly name?: string };
  return { kind: kind as ObjectKind, namespace, name };
}

function keyOf(object: RawObject): string {
  return Object.values(refOf(object)).join(" ");
}

function isSettled({ family, store, loop }: Running): boolean {
  const view = new NodeView(store, { nodeName: "node1", family, settings: SETTINGS_OF_TEST });
  view.pull();
  return (
    loop.lastSuccessMs !== undefined &&
    loop.pendingSinceMs === undefined &&
    isEqual([...loop.rows].toSorted(byKey), [...view.rows].toSorted(byKey))
  );
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
