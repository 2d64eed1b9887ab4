import type { Store } from "@turnout/core";
import { globalItems, nodeItem } from "./global-items.ts";
import type { ItemState } from "./item-state.ts";
import type { Item } from "./kpng-item.ts";

/** What is said of the whole cluster. */
export class GlobalState implements ItemState {
  readonly #store: Store;
  readonly #stopHearing: () => void;
  #services: Set<string>;
  #nodes: Set<string>;

  constructor(store: Store) {
    this.#store = store;
    this.#services = new Set(store.serviceKeys());
    this.#nodes = new Set(store.nodeNames());
    this.#stopHearing = store.onChange((change) => {
      if (change.kind === "service") this.#services.add(change.key);
      else if (change.kind === "node") this.#nodes.add(change.key);
    });
  }

  /** @see ItemState */
  refresh(): ReadonlyMap<string, readonly Item[]> {
    const items = new Map<string, readonly Item[]>();
    for (const key of this.#services) {
      const service = this.#store.service(key);
      items.set(key, service === undefined ? [] : globalItems(service, this.#store.slices(key).values()));
    }
    for (const name of this.#nodes) {
      const node = this.#store.node(name);
      // No Service's key is without a slash.
      items.set(name, node === undefined ? [] : [nodeItem(node)]);
    }
    this.#services = new Set();
    this.#nodes = new Set();
    return items;
  }

  /** @see ItemState */
  close(): void {
    this.#stopHearing();
  }
}
