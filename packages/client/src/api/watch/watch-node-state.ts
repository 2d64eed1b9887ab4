import { applyChangeSet, FAMILIES, ProxyError, type ChangeSet, type IPFamily, type NodeState } from "@turnout/core";
import type { NodeLink, NodeLinkOptions } from "./node-link.ts";

/** What to watch, and until when. */
export interface WatchOptions extends Omit<NodeLinkOptions, "target" | "failOnRefusal" | "awaitsNode"> {
  /** Default both. */
  readonly families?: readonly IPFamily[] | undefined;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Make a lasting connection to a node-state server. The protocol is loaded by this, and gRPC when it is first asked: a program that
 * never does has neither in memory.
 * @throws {ProxyError} `invalid_object` for a target that is none.
 */
export async function openNodeLink(options: NodeLinkOptions): Promise<NodeLink> {
  const { NodeLink: Link } = await import("./node-link.ts");
  return new Link(options);
}

/**
 * Follow the state of one node as change sets.
 *
 * Shape: the first one of each family is full; what happens while nobody iterates is merged into one per family.
 * Edges: a node-state server that goes away is waited for; ends when `signal` aborts or the loop is left.
 * @throws {ProxyError} `invalid_object` for a target that is none; `permission_denied`, `invalid_object` or
 * `host_unsupported` when whoever listens there refuses.
 */
export async function* watchNodeState(target: string, options: WatchOptions): AsyncGenerator<ChangeSet, void> {
  const { families = FAMILIES, signal, ...rest } = options;
  const link = await openNodeLink({ target, failOnRefusal: true, ...rest });
  const stop = new AbortController();
  const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  const ask = async (family: IPFamily): Promise<ChangeSet | undefined> => {
    try {
      return await link.feed(family).next(either);
    } catch (error) {
      // That is the end that was asked for; a refusal is none.
      if (either.aborted && ProxyError.is(error, "canceled")) return undefined;
      throw error;
    }
  };
  const asked = new Map<IPFamily, Promise<ChangeSet | undefined>>();
  try {
    for (;;) {
      for (const family of families) if (!asked.has(family)) asked.set(family, ask(family));
      const changes = await Promise.race(asked.values());
      if (changes === undefined) return;
      asked.delete(changes.family);
      yield changes;
    }
  } finally {
    stop.abort();
    await link.close();
  }
}

/** Everything known of one node at one moment. */
export interface FullState {
  /** Identity of this client; the KEP draft's InstanceID. */
  readonly instance: string;
  /** Counts the states handed out, from 1; the KEP draft's Rev. */
  readonly revision: number;
  readonly families: ReadonlyMap<IPFamily, NodeState>;
}

/**
 * Follow the state of one node as whole states, one after each change; the first one when every family is known.
 *
 * Edges: a consumer may keep what it got: nothing in it is changed later.
 * @throws {ProxyError} as {@link watchNodeState}.
 */
export async function* watchFullState(target: string, options: WatchOptions): AsyncGenerator<FullState, void> {
  const { families = FAMILIES } = options;
  const states = new Map<IPFamily, NodeState>();
  const instance = crypto.randomUUID();
  let revision = 0;
  for await (const changes of watchNodeState(target, options)) {
    const before = states.get(changes.family);
    const node = changes.node ?? before?.node;
    if (node === undefined) throw new Error("the first change set of a family is full, and has the node");
    states.set(changes.family, { node, rows: applyChangeSet(before?.rows ?? new Map(), changes), revision: changes.revision });
    if (states.size < families.length) continue;
    revision += 1;
    yield { instance, revision, families: new Map(states) };
  }
}

/**
 * Get the whole state of one node once.
 * @throws {ProxyError} `canceled` when `signal` aborts first, or as {@link watchNodeState}.
 */
export async function fetchFullState(target: string, options: WatchOptions): Promise<FullState> {
  for await (const state of watchFullState(target, options)) return state;
  throw new ProxyError("canceled", "waiting for node state was stopped", { object: target });
}
