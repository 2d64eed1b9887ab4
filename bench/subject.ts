import { createFeed, openDataplane, probeModule, Store, SyncLoop } from "@turnout/core";
import type {
  Backend,
  BackendModule,
  Exec,
  Feed,
  Issue,
  KernelObject,
  Log,
  NodeSettings,
  NodeViewOptions,
  Plain,
  SyncedEvent,
} from "@turnout/core";
import nft from "@turnout/backend-nft";
import { createWorld } from "@turnout/host";
import { NODE_NAME, nodeObject, POD_CIDR, serviceCIDRObject, serviceObject, sliceObject } from "./workload.ts";
import type { Shape } from "./workload.ts";

/** What every bench proxies with: kube-proxy's defaults and detect-local by pod CIDR. */
const SETTINGS: NodeSettings = {
  masqueradeAll: false,
  masqueradeBit: 14,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [POD_CIDR] },
  nodePortAddresses: undefined,
};

/** A store that refuses to be wrong: what it reports ends the bench. */
export function createStore(): Store {
  return new Store({ report: fail });
}

/**
 * Put a workload into a store, object by object, so that nothing but the store keeps them.
 * Resolves after the last; lets other work through now and then, as a source does.
 */
export async function fillStore(store: Store, shape: Shape): Promise<void> {
  store.upsert("Node", nodeObject());
  store.upsert("ServiceCIDR", serviceCIDRObject());
  for (let index = 0; index < shape.services; index++) {
    store.upsert("Service", serviceObject(index));
    store.upsert("EndpointSlice", sliceObject(index, shape));
    if (index % 500 === 499) await new Promise((resolve) => setImmediate(resolve));
  }
  for (const kind of ["Node", "ServiceCIDR", "Service", "EndpointSlice"] as const) store.markSynced(kind);
}

/** Whose view of a store the benches take. */
export const NODE_VIEW: NodeViewOptions = { nodeName: NODE_NAME, family: "IPv4", settings: SETTINGS, report: fail };

/** The feed the benches read: one view of the store. */
export function createView(store: Store): Feed {
  return createFeed(store, NODE_VIEW);
}

/** A proxy in this process and this network namespace. */
export interface Subject {
  readonly loop: {
    once(signal: AbortSignal): Promise<void>;
    run(signal: AbortSignal): Promise<void>;
  };
  readonly versions: Readonly<Record<string, string>>;
  /** Time spent in the backend's methods so far, ms. */
  readonly spentMs: Readonly<Record<string, number>>;
  /** Resolves at the next sync that changed something, or the one before if nobody has asked for it yet. */
  nextSync(): Promise<SyncedEvent>;
  close(): Promise<void>;
}

/** Open the nft backend here and put a sync loop before it. @throws {Error} when this host can't run it. */
export function createSubject(feed: Feed): Promise<Subject> {
  return createSubjectOf(feed, nft);
}

/** What a subject is opened with. */
export interface SubjectOptions {
  /** Options of the backend, by name. */
  readonly raw?: Readonly<Record<string, Plain>>;
  /** Somebody else changes the rules too, and puts back what he changed: nobody watches, because looking at them would delay what is measured. */
  readonly isShared?: boolean;
  /** Lets somebody see what the backend runs. */
  readonly watchExec?: (exec: Exec) => Exec;
}

/** Open a backend here and put a sync loop before it. @throws {Error} when this host can't run it. */
export async function createSubjectOf<O, H, K extends KernelObject, S>(
  feed: Feed,
  module: BackendModule<O, H, K, S>,
  { raw = {}, isShared = false, watchExec = (exec) => exec }: SubjectOptions = {},
): Promise<Subject> {
  const base = createWorld({ log: createBenchLog() });
  const own = module.createWorld?.({ ...base, exec: watchExec(base.exec) });
  const world = own ?? base;
  const options = module.parseOptions(raw);
  const { signal } = new AbortController();
  const { facts, versions, problems, capabilities } = await probeModule(module, options, world, signal);
  if (problems[0] !== undefined) throw problems[0];
  const spentMs: Record<string, number> = {};
  const dataplane = await openDataplane(module, options, world, signal);
  const backend = stopwatched(dataplane.family("IPv4"), spentMs);
  const synced = new Mailbox<SyncedEvent>();
  const loop = new SyncLoop({
    backend,
    feed,
    family: "IPv4",
    host: facts,
    clock: world.clock,
    log: world.log,
    observer: {
      queued: () => undefined,
      synced: (event) => {
        if (event.full || event.put + event.removed > 0) synced.put(event);
      },
      failed: ({ error }) => synced.fail(error),
      flowsForgotten: () => undefined,
      quarantined: ({ rows }) => synced.fail(new Error(`rows were refused: ${rows.join(" ")}`)),
    },
    minIntervalMs: 0,
    maxIntervalMs: 3_600_000,
    retryMs: 30_000,
    capabilities,
    report: fail,
  });
  const stop = new AbortController();
  // As the daemon does; hearing of every element that is loaded is part of what a load costs.
  const watching = isShared ? undefined : watchHost(backend, loop, stop.signal).catch((error: unknown) => synced.fail(error));
  return {
    loop,
    versions,
    spentMs,
    nextSync: () => synced.receive(),
    close: async () => {
      stop.abort();
      await watching;
      await dataplane.close(signal);
      own?.close?.();
    },
  };
}

async function watchHost<H, K extends KernelObject, S>(
  backend: Backend<H, K, S>,
  loop: SyncLoop<H, K, S>,
  signal: AbortSignal,
): Promise<void> {
  for await (const event of backend.watch?.(signal) ?? []) {
    if (event.kind === "facts") loop.setHost(event.facts);
    else throw new Error(`nobody but us is here, and yet: ${event.what}`);
  }
}

/** Log what must not happen in a bench; the rest costs nothing. */
export function createBenchLog(): Log {
  const write = (message: string, fields?: Readonly<Record<string, unknown>>): void =>
    void process.stderr.write(`${message} ${fields === undefined ? "" : JSON.stringify(fields)}\n`);
  return { debug: () => undefined, info: () => undefined, warn: write, error: write };
}

function fail(issue: Issue): never {
  throw new Error(`${issue.object}: ${issue.what}`);
}

/** Measure what the parts of a sync take. A render is too short to be timed 10,000 times for nothing, so those few µs are in. */
function stopwatched<H, K extends KernelObject, S>(backend: Backend<H, K, S>, spentMs: Record<string, number>): Backend<H, K, S> {
  const add = (name: string, startMs: number): void => {
    spentMs[name] = (spentMs[name] ?? 0) + performance.now() - startMs;
  };
  const whole = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const startMs = performance.now();
    const value = await work();
    add(name, startMs);
    return value;
  };
  const { plan, observe, apply } = backend;
  // Put over the backend's own, which may be methods of a class: a copy would lose them.
  return Object.assign(backend, {
    plan: (delta: Parameters<typeof plan>[0]) => {
      const startMs = performance.now();
      const planned = plan.call(backend, delta);
      add("plan", startMs);
      return planned;
    },
    observe: (signal: AbortSignal) => whole("observe", () => observe.call(backend, signal)),
    apply: (planned: Parameters<typeof apply>[0], signal: AbortSignal) => whole("apply", () => apply.call(backend, planned, signal)),
  });
}

/** One slot between one who puts and one who takes. */
class Mailbox<T> {
  #slot: { readonly value: T } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #waiting: PromiseWithResolvers<T> | undefined;

  put(value: T): void {
    if (this.#waiting === undefined) this.#slot = { value };
    else this.#waiting.resolve(value);
    this.#waiting = undefined;
  }

  fail(error: unknown): void {
    if (this.#waiting === undefined) this.#failure = { error };
    else this.#waiting.reject(error);
    this.#waiting = undefined;
  }

  receive(): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    const held = this.#slot;
    this.#slot = undefined;
    if (held !== undefined) return Promise.resolve(held.value);
    this.#waiting = Promise.withResolvers<T>();
    return this.#waiting.promise;
  }
}
