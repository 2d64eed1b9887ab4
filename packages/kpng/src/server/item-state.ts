import type { Item } from "./kpng-item.ts";

/** Works out items from a store, again only for what changed. */
export interface ItemState {
  /** Compute what changed since the last call: by owner (a Service or Node), all the items it has now. The store is synced. */
  refresh(): ReadonlyMap<string, readonly Item[]>;
  close(): void;
}
