import { claimOf, Claims, groundOf } from "../policy/claims.ts";
import type { Claimant } from "../policy/claims.ts";
import { destinationsFor } from "../policy/destinations.ts";
import type { PoolSizes, RuleContext } from "../policy/destinations.ts";
import { isEqual } from "../model/equal.ts";
import { LostClaimReports } from "../policy/lost-claims.ts";
import { DEFAULT_SETTINGS } from "../policy/node-context.ts";
import { serviceKeyOf } from "../model/names.ts";
import type { IPFamily, Issue } from "../model/api-objects.ts";
import { RecentRows } from "./recent-rows.ts";
import { ServiceLog } from "./service-log.ts";
import { isSameParts, partsFor } from "../policy/service-rows.ts";
import type { ServiceParts } from "../policy/service-rows.ts";
import { lostText, rowKeysOf, ServiceVersion } from "./service-version.ts";
import type { Store, StoreChange } from "./store.ts";
import { TableView } from "./table-view.ts";
import type { TableViewOptions } from "./table-view.ts";
import { TriggerTimes } from "./trigger-times.ts";

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
/** Neither decides on which addresses a row answers. */
const NO_POOLS: PoolSizes = { cluster: 0, local: 0, hasAny: false };
const NO_NODE: RuleContext = { addresses: [], detector: undefined, settings: DEFAULT_SETTINGS };

/**
 * All Services of a store in one family, for views of any number of nodes: what does not depend on the node exists once.
 *
 * Shape: {@link ServiceTable.settle} takes in what the store heard, as one revision; each Service that changed is then
 * looked at once, whatever the number of views. A view's rows are worked out when somebody asks.
 * Who wins a contested address does not depend on the node, so claims are settled here too.
 */
export class ServiceTable {
  readonly #store: Store;
  readonly #options: ServiceTableOptions;
  readonly #versions = new Map<string, ServiceVersion>();
  readonly #claims = new Claims<Claimant>();
  readonly #lost: LostClaimReports;
  readonly #log: ServiceLog;
  readonly #recent = new RecentRows(RECENT_WEIGHT_MAX);
  readonly #views = new Map<string, Set<TableView>>();
  readonly #listeners = new Set<() => void>();
  readonly #stopHearing: () => void;
  readonly #triggers = new TriggerTimes();
  #dirty: Set<string>;
  readonly #dirtyNodes = new Set<string>();
  #areRangesDirty = false;
  #isGroundDirty = true;
  #revision = 0;
  #serial = 0;

  constructor(store: Store, options: ServiceTableOptions) {
    this.#store = store;
    this.#options = options;
    this.#lost = new LostClaimReports(options.report);
    this.#log = new ServiceLog(FIRST, options.changesKept);
    this.#dirty = new Set(store.serviceKeys());
    this.#stopHearing = store.onChange((change) => this.#hear(change));
  }

  /** As of the last {@link ServiceTable.settle}; 0 before the first state. */
  get revision(): number {
    return this.#revision;
  }

  /** Hear when {@link ServiceTable.settle} may find something; called synchronously, must not throw. Returns the way to stop. */
  onNews(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Follow one node's state; close it in the end. */
  view(options: TableViewOptions): TableView {
    const { nodeName } = options;
    const views = this.#views.get(nodeName) ?? new Set();
    this.#views.set(nodeName, views);
    const table = {
      family: this.#options.family,
      store: this.#store,
      log: this.#log,
      recent: this.#recent,
      versions: this.#versions,
      revision: (): number => this.#revision,
      closed: (view: TableView): void => {
        views.delete(view);
        if (views.size === 0 && this.#views.get(nodeName) === views) this.#views.delete(nodeName);
      },
    };
    const view = new TableView(table, options);
    views.add(view);
    return view;
  }

  /** Take in what the store heard; false while the store isn't synced, and nothing may be said. */
  settle(): boolean {
    if (!this.#store.isSynced) return false;
    const isFirst = this.#revision === 0;
    const revision = this.#revision + 1;
    const areServicesNew = this.#settleServices(revision);
    const areNodesNew = this.#settleNodes(revision);
    if (isFirst || areServicesNew || areNodesNew) this.#revision = revision;
    return true;
  }

  /** Count a revision for something the table knows nothing of. */
  advance(): number {
    return ++this.#revision;
  }

  /** Stop following the store. */
  close(): void {
    this.#stopHearing();
    this.#listeners.clear();
  }

  #hear(change: StoreChange): void {
    if (change.kind === "service") {
      this.#dirty.add(change.key);
      if (change.triggeredMs !== undefined) this.#triggers.note(change.key, change.triggeredMs);
    } else if (change.kind === "serviceCIDRs") {
      this.#areRangesDirty = true;
      this.#isGroundDirty = true;
    } else if (change.kind === "nodeAddresses") {
      this.#isGroundDirty = true;
    } else if (change.kind === "node") {
      if (!this.#views.has(change.key)) return;
      this.#dirtyNodes.add(change.key);
    }
    for (const listener of this.#listeners) listener();
  }

  #settleNodes(revision: number): boolean {
    const names = this.#areRangesDirty || this.#revision === 0 ? [...this.#views.keys()] : [...this.#dirtyNodes];
    this.#dirtyNodes.clear();
    this.#areRangesDirty = false;
    let isNew = false;
    for (const name of names) for (const view of this.#views.get(name) ?? []) if (view.refresh(revision)) isNew = true;
    return isNew;
  }

  #settleServices(revision: number): boolean {
    const touched = this.#takeGround();
    if (this.#dirty.size === 0 && touched.size === 0) return false;
    const dirty = this.#dirty;
    this.#dirty = new Set();
    const times = this.#triggers.take();
    const changed = new Map<string, ServiceParts | undefined>();
    for (const key of dirty) {
      const service = this.#store.service(key);
      const parts = service === undefined ? undefined : partsFor(service, this.#store.slices(key), this.#options.family, "");
      const before = this.#versions.get(key)?.parts;
      if (isSameParts(before, parts)) continue;
      changed.set(key, parts);
      touched.add(key);
      for (const other of this.#claim(before, parts)) touched.add(other);
    }
    let isNew = false;
    for (const key of touched) {
      const parts = changed.has(key) ? changed.get(key) : this.#versions.get(key)?.parts;
      if (this.#put(revision, key, parts, changed.has(key), times.get(key) ?? NO_TIMES)) isNew = true;
    }
    return isNew;
  }

  /** Take in what service ranges and node addresses there are; returns Services that may have lost or got something by that. */
  #takeGround(): Set<string> {
    if (!this.#isGroundDirty) return new Set();
    this.#isGroundDirty = false;
    return new Set([...this.#claims.setGround(groundOf(this.#store, this.#options.family))].map(serviceKeyOf));
  }

  /** Put a Service's new claims in the place of its old ones; returns other Services whose destinations may have changed. */
  #claim(before: ServiceParts | undefined, after: ServiceParts | undefined): ReadonlySet<string> {
    const services = new Set<string>();
    if (before !== undefined && before.service === after?.service) return services;
    const wanted = claimantsOf(after);
    const rows = new Set([...claimantsOf(before).keys(), ...wanted.keys()]);
    for (const key of rows) for (const other of this.#claims.set(key, wanted.get(key))) services.add(serviceKeyOf(other));
    return services;
  }

  #put(revision: number, key: string, parts: ServiceParts | undefined, isChanged: boolean, triggersMs: readonly number[]): boolean {
    const before = this.#versions.get(key);
    const lost = [...new Set([...(before?.rowKeys ?? []), ...rowKeysOf(parts)])].flatMap((row) => this.#lostBy(row));
    if (!isChanged && isEqual(lost, before?.lost)) return false;
    if (parts === undefined) this.#versions.delete(key);
    else this.#versions.set(key, new ServiceVersion(++this.#serial, parts, lost));
    // Of the first state nothing can be behind.
    if (revision > FIRST) this.#log.add(revision, key, before, triggersMs, this.#versions.size);
    return true;
  }

  #lostBy(rowKeyText: string): readonly string[] {
    const settled = this.#claims.settled(rowKeyText);
    this.#lost.note(rowKeyText, settled?.row, settled?.lost ?? []);
    return settled?.lost.map(({ destination }) => lostText(rowKeyText, claimOf(destination, settled.row.name.protocol))) ?? [];
  }
}

/** What a Service's rows want to answer on; the same on every node. */
function claimantsOf(parts: ServiceParts | undefined): ReadonlyMap<string, Claimant> {
  if (parts === undefined) return new Map();
  const { service, addresses } = parts;
  const keys = rowKeysOf(parts);
  const claimants = service.ports.map((port, index): readonly [string, Claimant] => {
    const all = destinationsFor(service, port, addresses, NO_POOLS, NO_NODE);
    const destinations = all.map(({ kind, address, port: number }) => ({ kind, address, port: number }));
    return [keys[index] ?? "", { createdMs: service.createdMs, name: port, destinations }];
  });
  return new Map(claimants);
}
