import type { Store } from "@turnout/core";
import { createStoreProvider } from "@turnout/server/serve";
import type { Cursor, StateView } from "@turnout/server/serve";
import { memoryInUse } from "../heap-size.ts";
import { createStore, fail, fillStore, NODE_VIEW } from "../subject.ts";
import { TRACES } from "../traces.ts";
import type { Trace, TraceEvent } from "../traces.ts";
import { NODES, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";

/** What came of a trace. */
export interface TraceCount {
  readonly events: number;
  readonly changeSets: number;
  /** Rows set and deleted in them. */
  readonly rows: number;
  /** CPU time, ms: parsing aside, all that the node-state server does. */
  readonly cpuMs: number;
}

/** What a reader that was busy got, and what it cost to have it wait. */
export interface SlowReaderCount {
  readonly updates: number;
  readonly changeSets: number;
  readonly rows: number;
  /** Change sets somebody else got meanwhile. */
  readonly followed: number;
  /** What the process held more after the updates than before, bytes. */
  readonly retainedBytes: number;
}

/** What to run: a trace, or so many updates while a reader is busy. */
export interface TracesParameters {
  readonly shape: Shape;
  readonly trace?: string;
  readonly updates?: number;
}

/** What came of it, for a table. */
export type TracesReport =
  (TraceCount & { readonly mergedChangeSets: number; readonly eventUs: number }) | (SlowReaderCount & { readonly events: number });

/** The second look at a trace is after so many events, as a busy second has; the first after each, which merges nothing. */
const MERGED = 100;
const NAMESPACE = "bench";

/** Play a trace to a watcher of a node-state server's view in this process, or update it while it is busy. */
export async function traces({ shape, trace: name, updates }: TracesParameters): Promise<TracesReport> {
  if (updates !== undefined) return { ...(await slowReader(shape, updates)), events: updates };
  const trace = TRACES[name ?? ""];
  if (trace === undefined) throw new Error(`there is no trace "${String(name)}"`);
  const each = await runTrace(trace, shape, 1);
  const { changeSets: mergedChangeSets } = await runTrace(trace, shape, MERGED);
  return { ...each, mergedChangeSets, eventUs: (each.cpuMs / each.events) * 1000 };
}

/** Play one trace; the watcher looks after each `eventsPerLook` events. */
export async function runTrace(trace: Trace, shape: Shape, eventsPerLook: number): Promise<TraceCount> {
  const store = await filled(shape);
  const reader = new Reader(store);
  await reader.first();
  let events = 0;
  let cpuMs = 0;
  // A few at a time: making them is not what is measured.
  for (const chunk of chunksOf(trace(shape), eventsPerLook)) {
    const cpu = process.cpuUsage();
    for (const event of chunk) put(store, event);
    await reader.look();
    const { user, system } = process.cpuUsage(cpu);
    cpuMs += (user + system) / 1000;
    events += chunk.length;
  }
  reader.close();
  return { events, changeSets: reader.changeSets, rows: reader.rows, cpuMs };
}

/** Update one endpoint again and again while one watcher is busy, and another takes each. */
export async function slowReader(shape: Shape, updates: number): Promise<SlowReaderCount> {
  const store = await filled(shape);
  const [slow, fast] = [new Reader(store), new Reader(store)];
  await slow.first();
  await fast.first();
  const before = await memoryInUse();
  for (let update = 1; update <= updates; update++) {
    store.upsert("EndpointSlice", sliceObject(0, shape, { unready: update % shape.endpoints }));
    await fast.look();
  }
  const after = await memoryInUse();
  await slow.look();
  await slow.look();
  for (const reader of [slow, fast]) reader.close();
  const { changeSets, rows } = slow;
  return { updates, changeSets, rows, followed: fast.changeSets, retainedBytes: after.heapBytes - before.heapBytes };
}

async function filled(shape: Shape): Promise<Store> {
  const store = createStore();
  await fillStore(store, shape, NODES);
  return store;
}

function put(store: Store, { kind, object, name }: TraceEvent): void {
  if (object === undefined) store.remove(kind, kind === "Node" ? "" : NAMESPACE, name);
  else store.upsert(kind, object);
}

function* chunksOf<T>(items: Iterable<T>, size: number): Iterable<readonly T[]> {
  let chunk: T[] = [];
  for (const item of items) {
    chunk.push(item);
    if (chunk.length < size) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/** A watcher in this process. */
class Reader {
  readonly #view: StateView;
  #cursor: Cursor = { instance: "", revision: 0 };
  changeSets = 0;
  rows = 0;

  constructor(store: Store) {
    const provider = createStoreProvider(store, fail);
    const { nodeName, settings } = NODE_VIEW;
    this.#view = provider.open({ nodeName, settings, bindAddress: "" }).view("IPv4", "bench");
  }

  /** Take the first state, which does not count. */
  async first(): Promise<void> {
    const { changes } = await this.#view.next(this.#cursor, new AbortController().signal);
    this.#cursor = changes;
  }

  /** Take what there is, if there is anything: an answer that is ready comes within a turn of the event loop. */
  async look(): Promise<void> {
    const stop = new AbortController();
    const nothing = Symbol("nothing");
    const answer = this.#view.next(this.#cursor, stop.signal).catch(() => nothing);
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    const found = await answer;
    if (typeof found === "symbol") return;
    this.#cursor = found.changes;
    this.changeSets += 1;
    this.rows += found.changes.set.length + found.changes.delete.length;
  }

  close(): void {
    this.#view.close();
  }
}
