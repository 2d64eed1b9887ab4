import type { Issue, Store } from "@turnout/core";
import { globalItems, nodeItem } from "./global-items.ts";
import type { Item, ItemState } from "./kpng-item.ts";
import { RowBook } from "./row-book.ts";

/** What is said of the whole cluster. */
export class GlobalState implements ItemState {
  readonly #store: Store;
  readonly #book: RowBook;
  readonly #stopHearing: () => void;
  #nodes: Set<string>;

  /** `report` hears of contested addresses. */
  constructor(store: Store, report: (issue: Issue) => void) {
    this.#store = store;
    this.#book = new RowBook(store, "", report);
    this.#nodes = new Set(store.nodeNames());
    this.#stopHearing = store.onChange((change) => {
      if (change.kind === "node") this.#nodes.add(change.key);
    });
  }

  /** @see ItemState */
  refresh(): ReadonlyMap<string, readonly Item[]> {
    const items = new Map<string, readonly Item[]>();
    for (const key of this.#book.refresh()) items.set(key, globalItems(this.#book.rowsOf(key), this.#store.slices(key).values()));
    for (const name of this.#nodes) {
      const node = this.#store.node(name);
      // No Service's key is without a slash.
      items.set(name, node === undefined ? [] : [nodeItem(node)]);
    }
    this.#nodes = new Set();
    return items;
  }

  /** @see ItemState */
  close(): void {
    this.#stopHearing();
    this.#book.close();
  }
}
