import { RevisionLog, Waiters, type Store } from "@turnout/core";
import type { Item, ItemChange, ItemState } from "./kpng-item.ts";

/**
 * Everything that is said of one node, or of the cluster, to however many watchers.
 *
 * Shape: computed when a watcher asks, from what changed in the store since somebody last did; a watcher brings along the
 * items it holds and the revision at which it got them.
 */
export class ItemImage {
  readonly #store: Store;
  readonly #state: ItemState;
  readonly #items = new Map<string, Item>();
  readonly #pathsOf = new Map<string, readonly string[]>();
  readonly #stopHearing: () => void;
  readonly #waiters = new Waiters();
  /** The paths of items that changed; for who is behind it everything is compared. */
  readonly #log: RevisionLog = new RevisionLog(0);
  #revision = 0;
  /** What whoever holds nothing lacks, until something changes. */
  #all: readonly ItemChange[] | undefined;
  #isStale = true;
  #isWaking = false;

  constructor(store: Store, state: ItemState) {
    this.#store = store;
    this.#state = state;
    this.#stopHearing = store.onChange(() => this.#hear());
  }

  /** Counts the looks at which something had changed. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * Tell what is different from what a watcher holds; undefined before the store is synced.
   *
   * Shape: `since` is the image's revision when it got that, undefined when it has it from elsewhere.
   */
  changesFrom(held: ReadonlyMap<string, Item>, since: number | undefined): readonly ItemChange[] | undefined {
    if (!this.#store.isSynced) return undefined;
    this.#refresh();
    if (held.size === 0) return this.#everything();
    const isKnown = since !== undefined && this.#log.reaches(since);
    const paths = isKnown ? this.#log.since(since).keys() : new Set([...held.keys(), ...this.#items.keys()]);
    const changes: ItemChange[] = [];
    for (const path of paths) {
      const [before, after] = [held.get(path), this.#items.get(path)];
      if (before !== after && !isSame(before, after)) changes.push({ path, before, after });
    }
    return changes;
  }

  /** Resolve when there may be something new, or `signal` aborts. */
  async news(signal: AbortSignal): Promise<void> {
    await this.#waiters.wait(signal);
  }

  /** Stop following the store. */
  close(): void {
    this.#stopHearing();
    this.#state.close();
  }

  /** In the order in which it is sent, which is worked out once for all who come. */
  #everything(): readonly ItemChange[] {
    const changes = (): readonly ItemChange[] => [...this.#items].map(([path, after]) => ({ path, before: undefined, after }));
    return (this.#all ??= changes().toSorted((a, b) => (a.path < b.path ? -1 : 1)));
  }

  #hear(): void {
    this.#isStale = true;
    if (this.#isWaking || this.#waiters.size === 0) return;
    this.#isWaking = true;
    // What is told in one go is one change set.
    setImmediate(() => {
      this.#isWaking = false;
      this.#waiters.resolve();
    });
  }

  #refresh(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    const changed: string[] = [];
    for (const [owner, items] of this.#state.refresh()) {
      const paths = new Set(items.map(({ path }) => path));
      for (const path of this.#pathsOf.get(owner) ?? []) {
        if (!paths.has(path) && this.#items.delete(path)) changed.push(path);
      }
      for (const item of items) {
        if (isSame(this.#items.get(item.path), item)) continue;
        this.#items.set(item.path, item);
        changed.push(item.path);
      }
      if (paths.size > 0) this.#pathsOf.set(owner, [...paths]);
      else this.#pathsOf.delete(owner);
    }
    if (changed.length === 0) return;
    this.#revision += 1;
    this.#all = undefined;
    for (const path of changed) this.#log.add(this.#revision, path, undefined, this.#items.size);
  }
}

function isSame(a: Item | undefined, b: Item | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.kind === b.kind && a.bytes.equals(b.bytes));
}
