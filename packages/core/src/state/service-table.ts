import type { IPFamily, Issue } from "../model/api-objects.ts";
import { isEqual } from "../model/equal.ts";
import { groundOf } from "../policy/ground.ts";
import { isSameParts, partsFor, rowKeysOf } from "../policy/service-rows.ts";
import type { ServiceParts } from "../policy/service-rows.ts";
import { RecentRows } from "./recent-rows.ts";
import { RowBlocks } from "./row-blocks.ts";
import { ServiceClaims } from "./service-claims.ts";
import { ServiceLog } from "./service-log.ts";
import { ServiceVersion } from "./service-version.ts";
import { StoreNews } from "./store-news.ts";
import type { Store } from "./store.ts";
import { TableView } from "./table-view.ts";
import type { TableParts, TableViewOptions } from "./table-view.ts";

/** The views of a table, by the node that each is of. */
class ViewsByNode {
  readonly #views = new Map<string, Set<TableView>>();

  /** Tell whether there is any view of a node. */
  has(nodeName: string): boolean {
    return this.#views.has(nodeName);
  }

  add(nodeName: string, view: TableView): void {
    const views = this.#views.get(nodeName);
    if (views === undefined) this.#views.set(nodeName, new Set([view]));
    else views.add(view);
  }

  delete(nodeName: string, view: TableView): void {
    const views = this.#views.get(nodeName);
    views?.delete(view);
    if (views?.size === 0) this.#views.delete(nodeName);
  }

  /** Have the views of these nodes look at them again; returns whether any node is another, from `revision` on. */
  refresh(nodeNames: ReadonlySet<string> | "all", revision: number): boolean {
    let isNew = false;
    for (const name of nodeNames === "all" ? this.#views.keys() : nodeNames)
      for (const view of this.#views.get(name) ?? []) if (view.refresh(revision)) isNew = true;
    return isNew;
  }
}

/** What a table is made of. */
export interface ServiceTableOptions {
  readonly family: IPFamily;
  /** Hears of contested addresses, each once. */
  readonly report?: (issue: Issue) => void;
  /** Changed Services that are remembered at least; default 4,096. */
  readonly changesKept?: number | undefined;
}

/** The first state's revision. */
const FIRST = 1;
/** Endpoints of rows that belong to one node, kept for a while: some megabytes, twice. */
const RECENT_WEIGHT_MAX = 50_000;
const NO_TIMES: readonly number[] = [];

/**
 * All Services of a store in one family, for views of any number of nodes: what does not depend on the node exists once.
 *
 * Shape: {@link ServiceTable.update} takes in what the store heard, as one revision; each Service that changed is then
 * looked at once, whatever the number of views. A view's rows are worked out when somebody asks.
 */
export class ServiceTable {
  readonly #store: Store;
  readonly #family: IPFamily;
  readonly #versions = new Map<string, ServiceVersion>();
  readonly #blocks = new RowBlocks();
  readonly #claims: ServiceClaims;
  readonly #log: ServiceLog;
  readonly #recent = new RecentRows(RECENT_WEIGHT_MAX);
  readonly #views = new ViewsByNode();
  readonly #listeners = new Set<() => void>();
  readonly #news: StoreNews;
  #revision = 0;
  #serial = 0;

  constructor(store: Store, options: ServiceTableOptions) {
    this.#store = store;
    this.#family = options.family;
    this.#claims = new ServiceClaims(options.report);
    this.#log = new ServiceLog(FIRST, options.changesKept);
    const onNews = (): void => {
      for (const listener of this.#listeners) listener();
    };
    this.#news = new StoreNews(store, { isFollowed: (nodeName) => this.#views.has(nodeName), onNews });
  }

  /** As of the last {@link ServiceTable.update}; 0 before the first state. */
  get revision(): number {
    return this.#revision;
  }

  /** Which contested addresses rows go without now. */
  issues(): Iterable<Issue> {
    return this.#claims.issues();
  }

  /** Hear when {@link ServiceTable.update} may find something; called synchronously, must not throw. Returns the way to stop. */
  onNews(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Follow one node's state; close it in the end. */
  view(options: TableViewOptions): TableView {
    const { nodeName } = options;
    const table: TableParts = {
      family: this.#family,
      store: this.#store,
      log: this.#log,
      recent: this.#recent,
      versions: this.#versions,
      blocks: this.#blocks,
      revision: () => this.#revision,
      closed: (closed) => this.#views.delete(nodeName, closed),
    };
    const view = new TableView(table, options);
    this.#views.add(nodeName, view);
    return view;
  }

  /** Take in what the store heard; false while the store isn't synced, and nothing may be said. */
  update(): boolean {
    if (!this.#store.isSynced) return false;
    const isFirst = this.#revision === 0;
    const revision = this.#revision + 1;
    const areServicesNew = this.#updateServices(revision);
    const areNodesNew = this.#views.refresh(this.#news.consumeNodes(), revision);
    if (isFirst || areServicesNew || areNodesNew) this.#revision = revision;
    return true;
  }

  /** Count a revision for something the table knows nothing of. */
  advance(): number {
    return ++this.#revision;
  }

  /** Stop following the store. */
  close(): void {
    this.#news.close();
    this.#listeners.clear();
  }

  #updateServices(revision: number): boolean {
    const isGroundNew = this.#news.consumeGround();
    const touched = new Set(isGroundNew ? this.#claims.setGround(groundOf(this.#store, this.#family)) : []);
    const services = this.#news.consumeServices();
    const changed = this.#changedParts(services);
    for (const [key, parts] of changed) {
      touched.add(key);
      for (const other of this.#claims.set(this.#versions.get(key)?.parts, parts)) touched.add(other);
    }
    for (const other of this.#claims.setEndpoints(services, this.#store)) touched.add(other);
    const times = this.#news.consumeTriggers();
    let isNew = false;
    for (const key of touched) {
      const isChanged = changed.has(key);
      const parts = isChanged ? changed.get(key) : this.#versions.get(key)?.parts;
      if (this.#put(revision, key, parts, isChanged, times.get(key) ?? NO_TIMES)) isNew = true;
    }
    return isNew;
  }

  /** Of these Services those whose rows may be others now, with what they are made of; undefined: they have none. */
  #changedParts(services: ReadonlySet<string>): ReadonlyMap<string, ServiceParts | undefined> {
    const changed = new Map<string, ServiceParts | undefined>();
    for (const key of services) {
      const service = this.#store.service(key);
      const before = this.#versions.get(key)?.parts;
      const parts = service === undefined ? undefined : partsFor(service, this.#store.slices(key), this.#family, "", before);
      if (!isSameParts(before, parts)) changed.set(key, parts);
    }
    return changed;
  }

  #put(revision: number, key: string, parts: ServiceParts | undefined, isChanged: boolean, triggersMs: readonly number[]): boolean {
    const before = this.#versions.get(key);
    const lost = this.#claims.lostBy(new Set([...(before?.rowKeys ?? []), ...rowKeysOf(parts)]));
    if (!isChanged && before !== undefined && isEqual([...lost], [...before.lost])) return false;
    const after = parts === undefined ? undefined : new ServiceVersion(++this.#serial, parts, lost);
    if (after === undefined) this.#versions.delete(key);
    else this.#versions.set(key, after);
    this.#blocks.set(key, before, after);
    // Of the first state nothing can be behind.
    if (revision > FIRST) this.#log.add(revision, key, before, triggersMs, this.#versions.size);
    return true;
  }
}
