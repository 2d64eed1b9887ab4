import { Waiters } from "../model/waiters.ts";
import { Claims, hasUsableEndpoint } from "../policy/claims.ts";
import { groundOf } from "../policy/ground.ts";
import { isEqual } from "../model/equal.ts";
import { ProxyError } from "../model/errors.ts";
import { LostClaimReports } from "../policy/lost-claims.ts";
import type { ChangeSet, Feed, NodeContext, NodeSettings, ServicePort } from "../model/rows.ts";
import { nodeContextFor } from "../policy/node-context.ts";
import type { IPFamily, Issue } from "../model/api-objects.ts";
import { serviceKeyOf } from "../model/names.ts";
import { rowsFor } from "../policy/service-rows.ts";
import type { ServiceRows } from "../policy/service-rows.ts";
import { StoreNews } from "./store-news.ts";
import type { Store } from "./store.ts";

/** For whom a view of the store is computed. */
export interface NodeViewOptions {
  readonly nodeName: string;
  readonly family: IPFamily;
  readonly settings: NodeSettings;
  /** Canonical; goes before the node's own addresses of its family, as the primary one. */
  readonly bindAddress?: string;
  /** Identity of this run of the node-state server. */
  readonly instance?: string;
  readonly report?: (issue: Issue) => void;
}

const NOTHING: ReadonlySet<string> = new Set();
const NO_ROWS: readonly ServicePort[] = [];

/** What a look has found so far. */
interface Found {
  /** Keys of rows that may have lost or got an address. */
  readonly touched: Set<string>;
  /** Keys of rows that are new, different or gone. */
  readonly changed: Set<string>;
}

/**
 * One node's state in one family, computed from a store: only what changed since the last look is computed again.
 * For the one node of this process; {@link ServiceTable} is for many.
 *
 * Edges: nothing is said before the store is synced; an edit undone before the next look is no change.
 */
export class NodeView {
  readonly #store: Store;
  readonly #options: NodeViewOptions;
  readonly #claims = new Claims<ServicePort>(hasUsableEndpoint);
  readonly #rows = new Map<string, ServicePort>();
  readonly #rowsOfService = new Map<string, ServiceRows>();
  readonly #lost: LostClaimReports;
  readonly #news: StoreNews;
  #isFullDue = true;
  #context: NodeContext | undefined;
  #revision = 0;
  readonly #waiters = new Waiters();

  constructor(store: Store, options: NodeViewOptions) {
    this.#store = store;
    this.#options = options;
    this.#lost = new LostClaimReports(options.report);
    this.#news = new StoreNews(store, { isFollowed: (name) => name === options.nodeName, onNews: () => this.#wakeUp() });
  }

  /** All rows as of the last {@link pull}. */
  get rows(): ReadonlyMap<string, ServicePort> {
    return this.#rows;
  }

  /** What is wrong with objects of the store, and what rows of this view go without. */
  *issues(): Iterable<Issue> {
    yield* this.#store.issues();
    yield* this.#lost.issues();
  }

  /** Stop following the store. */
  close(): void {
    this.#news.close();
  }

  /** Make the next {@link pull} a full one. */
  askFull(): void {
    this.#isFullDue = true;
    this.#wakeUp();
  }

  /** Resolve when {@link pull} may have something to give. @throws {ProxyError} `canceled` on abort. */
  async wait(signal: AbortSignal): Promise<void> {
    while (!this.#hasNews()) {
      if (signal.aborted) throw new ProxyError("canceled", "waiting for node state was stopped");
      await this.#waiters.wait(signal);
    }
  }

  /** Compute what changed since the last call; undefined when nothing did, or the store isn't synced yet. */
  pull(): ChangeSet | undefined {
    if (!this.#store.isSynced) return undefined;
    const isFull = this.#isFullDue;
    const context = this.#refreshContext();
    const changed = this.#recompute(context !== undefined);
    const triggersMs = this.#consumeTriggers(changed);
    if (!isFull && context === undefined && changed.size === 0) return undefined;
    this.#isFullDue = false;
    const keys = isFull ? [...this.#rows.keys()] : [...changed];
    const node = isFull ? this.#context : context;
    return {
      instance: this.#options.instance ?? "local",
      revision: ++this.#revision,
      family: this.#options.family,
      full: isFull,
      ...(node === undefined ? {} : { node }),
      set: keys.flatMap((key) => this.#rows.get(key) ?? []),
      delete: isFull ? [] : keys.filter((key) => !this.#rows.has(key)),
      triggersMs,
    };
  }

  #hasNews(): boolean {
    return this.#store.isSynced && (this.#isFullDue || !this.#news.isEmpty);
  }

  /**
   * The trigger times of rows that changed; those of slices that changed nothing are let go, or a later change of some
   * other Service would be charged with them. What was there before the first state says nothing of our latency.
   */
  #consumeTriggers(changed: ReadonlySet<string>): readonly number[] {
    const times = this.#news.consumeTriggers();
    if (times.size === 0) return [];
    const services = this.#revision === 0 ? [] : [...changed].map(serviceKeyOf);
    return [...new Set(services)].flatMap((serviceKey) => times.get(serviceKey) ?? []);
  }

  #wakeUp(): void {
    if (!this.#hasNews()) return;
    this.#waiters.resolve();
  }

  /** Rebuild the context if it may be another. Returns the new one if it is. */
  #refreshContext(): NodeContext | undefined {
    const nodes = this.#news.consumeNodes();
    if (nodes !== "all" && nodes.size === 0) return undefined;
    const { nodeName, family, settings, bindAddress } = this.#options;
    const node = this.#store.lastingNode(nodeName);
    const context = nodeContextFor({ name: nodeName, family, settings, node, serviceCIDRs: this.#store.serviceCIDRs(), bindAddress });
    if (isEqual(context, this.#context)) return undefined;
    this.#context = context;
    return context;
  }

  /** Compute the changed Services again, or all of them; returns the keys of rows that are new, different or gone. */
  #recompute(areAllDue: boolean): ReadonlySet<string> {
    const services = this.#news.consumeServices();
    const dirty = areAllDue ? new Set([...services, ...this.#store.serviceKeys()]) : services;
    const found: Found = { touched: new Set(this.#consumeGround()), changed: new Set() };
    for (const serviceKey of dirty) this.#recomputeService(serviceKey, found);
    this.#claims.setEndpoints(services, this.#store, found.touched);
    for (const key of found.touched) if (this.#resolve(key)) found.changed.add(key);
    return found.changed;
  }

  /** Take in what service ranges and node addresses there are; returns the keys of rows that may have lost or got something by that. */
  #consumeGround(): ReadonlySet<string> {
    if (!this.#news.consumeGround()) return NOTHING;
    return this.#claims.setGround(groundOf(this.#store, this.#options.family, this.#options.nodeName));
  }

  #recomputeService(serviceKey: string, found: Found): void {
    const service = this.#store.service(serviceKey);
    const context = this.#context;
    const before = this.#rowsOfService.get(serviceKey);
    const slices = this.#store.slices(serviceKey);
    const after = service === undefined || context === undefined ? undefined : rowsFor(service, slices, context, before);
    const rowsBefore = before?.rows ?? NO_ROWS;
    const rows = after?.rows ?? NO_ROWS;
    const keys = new Set(rows.map(({ key }) => key));
    for (const { key } of rowsBefore) if (!keys.has(key)) this.#claims.set(key, undefined, found.touched);
    rows.forEach((row, index) => {
      if (row !== rowsBefore[index]) this.#changeRow(row, rowsBefore[index], found);
    });
    if (after === undefined) this.#rowsOfService.delete(serviceKey);
    else this.#rowsOfService.set(serviceKey, after);
  }

  #changeRow(row: ServicePort, before: ServicePort | undefined, { touched, changed }: Found): void {
    const { key } = row;
    const isClaimNew = this.#claims.set(key, row, touched);
    // The usual change is one of endpoints, of a row that has all it wants.
    if (!isClaimNew && before !== undefined && this.#rows.get(key) === before && !touched.has(key)) {
      this.#rows.set(key, row);
      changed.add(key);
      return;
    }
    touched.add(key);
  }

  #resolve(key: string): boolean {
    const resolved = this.#claims.resolve(key);
    this.#lost.note(key, resolved);
    const before = this.#rows.get(key);
    if (resolved === undefined) return this.#rows.delete(key);
    if (isEqual(before, resolved.row)) return false;
    this.#rows.set(key, resolved.row);
    return true;
  }
}

/** Follow a store as a feed: what happens while nobody pulls is merged into one change set. */
export function createFeed(store: Store, options: NodeViewOptions): Feed {
  return feedOf(new NodeView(store, options));
}

/** Pull a view as a feed; it has one consumer. */
export function feedOf(view: NodeView): Feed {
  return {
    async next(signal: AbortSignal): Promise<ChangeSet> {
      for (;;) {
        await view.wait(signal);
        const changes = view.pull();
        if (changes !== undefined) return changes;
      }
    },
    issues: () => view.issues(),
  };
}
