import { createFeed, openDataplane, probeModule, Store, SyncLoop } from "@turnout/core";
import type {
  Backend,
  BackendModule,
  Exec,
  Issue,
  KernelObject,
  Log,
  NodeSettings,
  NodeViewOptions,
  ObjectKind,
  Plain,
  SyncedEvent,
} from "@turnout/core";
import { createWorld } from "@turnout/host";
import { NODE_NAME, nodeObject, objectsOf, POD_CIDR } from "./workload.ts";
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
export async function fillStore(store: Store, shape: Shape, nodes: number = 1): Promise<void> {
  let count = 0;
  for (const object of objectsOf(shape)) {
    store.upsert(object["kind"] as ObjectKind, object);
    if (++count % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  for (let index = 1; index < nodes; index++) store.upsert("Node", nodeObject(index));
  for (const kind of ["Node", "ServiceCIDR", "Service", "EndpointSlice"] as const) store.markSynced(kind);
}

/** Whose view of a store the benches take. */
export const NODE_VIEW: NodeViewOptions = { nodeName: NODE_NAME, family: "IPv4", settings: SETTINGS, report: fail };

/** A proxy in this process and this network namespace. */
export interface Subject {
  readonly loop: {
    once(signal: AbortSignal): Promise<void>;
    run(signal: AbortSignal): Promise<void>;
  };
  /** Time spent in reading the host so far, ms, and whether something was written. */
  readonly spent: { readonly observeMs: number; readonly hasApplied: boolean };
  /** Resolves at the next sync that changed something, or the one before if nobody has asked for it yet. */
  nextSync(): Promise<SyncedEvent>;
  close(): Promise<void>;
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

/** Open a backend here and put a sync loop before it, with one view of the store. @throws {Error} when this host can't run it. */
export async function createSubjectOf<O, H, K extends KernelObject, S>(
  store: Store,
  module: BackendModule<O, H, K, S>,
  { raw = {}, isShared = false, watchExec = (exec) => exec }: SubjectOptions = {},
): Promise<Subject> {
  const base = createWorld({ log: createBenchLog() });
  const own = module.createWorld?.({ ...base, exec: watchExec(base.exec) });
  const world = own ?? base;
  const options = module.parseOptions(raw);
  const { signal } = new AbortController();
  const { facts, problems, capabilities } = await probeModule(module, options, world, signal);
  if (problems[0] !== undefined) throw problems[0];
  const spent = { observeMs: 0, hasApplied: false };
  const dataplane = await openDataplane(module, options, world, signal);
  const backend = stopwatched(dataplane.family("IPv4"), spent);
  const synced = new Mailbox<SyncedEvent>();
  const loop = new SyncLoop({
    backend,
    feed: createFeed(store, NODE_VIEW),
    family: "IPv4",
    host: facts,
    clock: world.clock,
    log: world.log,
    observer: {
      queued: () => undefined,
      synced: (event) => {
        if (event.waitingSinceMs === undefined && (event.full || event.put + event.removed > 0)) synced.put(event);
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
    spent,
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

/** Nothing may be wrong with a workload. */
export function fail(issue: Issue): never {
  throw new Error(`${issue.object}: ${issue.what}`);
}

/** Measure what reading the host takes, and whether something is written. */
function stopwatched<H, K extends KernelObject, S>(
  backend: Backend<H, K, S>,
  spent: { observeMs: number; hasApplied: boolean },
): Backend<H, K, S> {
  const { observe, apply } = backend;
  // Put over the backend's own, which may be methods of a class: a copy would lose them.
  return Object.assign(backend, {
    observe: async (signal: AbortSignal) => {
      const startMs = performance.now();
      const observed = await observe.call(backend, signal);
      spent.observeMs += performance.now() - startMs;
      return observed;
    },
    apply: (...[planned, signal]: Parameters<typeof apply>) => {
      spent.hasApplied = true;
      return apply.call(backend, planned, signal);
    },
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
