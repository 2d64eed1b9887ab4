import { DEFAULT_SETTINGS, FAMILIES, NodeView, type IPFamily, type Issue, type ServicePort, type Store } from "@turnout/core";
import type { ItemState } from "./item-state.ts";
import type { Item } from "./kpng-item.ts";
import { localItems } from "./local-items.ts";

/** What one node is told: the items of the rows of both families. */
export class LocalState implements ItemState {
  readonly #store: Store;
  /** kpng's requests have no settings; those that decide which endpoints are used belong to no process. */
  readonly #views: readonly { readonly family: IPFamily; readonly view: NodeView }[];
  readonly #rows = new Map<string, Map<string, ServicePort>>();
  readonly #stopHearing: () => void;
  /** Services whose rows or slices changed; a pod's name is in no row. */
  #dirty = new Set<string>();

  /** "" is a node nobody knows: nothing is local to it. `report` hears of contested addresses. */
  constructor(store: Store, nodeName: string, report: (issue: Issue) => void) {
    this.#store = store;
    const settings = DEFAULT_SETTINGS;
    this.#views = FAMILIES.map((family) => ({ family, view: new NodeView(store, { nodeName, family, settings, report }) }));
    this.#stopHearing = store.onChange((change) => {
      if (change.kind === "service") this.#dirty.add(change.key);
    });
  }

  /** @see ItemState */
  refresh(): ReadonlyMap<string, readonly Item[]> {
    for (const { family, view } of this.#views) {
      const changes = view.take();
      for (const row of changes?.set ?? []) this.#setRow(`${row.name.namespace}/${row.name.name}`, `${family} ${row.key}`, row);
      for (const key of changes?.delete ?? []) this.#setRow(key.slice(0, key.indexOf(":")), `${family} ${key}`, undefined);
    }
    const dirty = this.#dirty;
    this.#dirty = new Set();
    return new Map([...dirty].map((service) => [service, this.#itemsOf(service)]));
  }

  /** @see ItemState */
  close(): void {
    this.#stopHearing();
    for (const { view } of this.#views) view.close();
  }

  #setRow(service: string, key: string, row: ServicePort | undefined): void {
    this.#dirty.add(service);
    const rows = this.#rows.get(service) ?? new Map<string, ServicePort>();
    if (row === undefined) rows.delete(key);
    else rows.set(key, row);
    if (rows.size === 0) this.#rows.delete(service);
    else this.#rows.set(service, rows);
  }

  #itemsOf(service: string): readonly Item[] {
    const rows = this.#rows.get(service);
    if (rows === undefined) return [];
    const pods = new Map<string, string | undefined>();
    for (const { endpoints } of this.#store.slices(service).values()) for (const { ip, podName } of endpoints) pods.set(ip, podName);
    return localItems([...rows.values()], (ip) => pods.get(ip));
  }
}
