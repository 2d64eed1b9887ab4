import type { Issue, Store } from "@turnout/core";
import type { Item, ItemState } from "./kpng-item.ts";
import { localItems } from "./local-items.ts";
import { RowBook } from "./row-book.ts";

/** What one node is told: the items of the rows of both families. */
export class LocalState implements ItemState {
  readonly #store: Store;
  readonly #book: RowBook;

  /** As {@link RowBook}. */
  constructor(store: Store, nodeName: string, report: (issue: Issue) => void) {
    this.#store = store;
    this.#book = new RowBook(store, nodeName, report);
  }

  /** @see ItemState */
  refresh(): ReadonlyMap<string, readonly Item[]> {
    return new Map([...this.#book.refresh()].map((service) => [service, this.#itemsOf(service)]));
  }

  /** @see ItemState */
  close(): void {
    this.#book.close();
  }

  #itemsOf(service: string): readonly Item[] {
    const rows = this.#book.rowsOf(service);
    if (rows.length === 0) return [];
    const pods = new Map<string, string | undefined>();
    for (const { endpoints } of this.#store.slices(service).values()) for (const { ip, podName } of endpoints) pods.set(ip, podName);
    return localItems(rows, (ip) => pods.get(ip));
  }
}
