import { invariant, ServiceTable, Waiters, type IPFamily, type Issue, type Store } from "@turnout/core";

/**
 * A table with those who wait for it.
 *
 * Shape: what the store hears in one turn of the event loop is one revision; nobody is woken for a revision that is none.
 */
export class AwaitedTable {
  readonly table: ServiceTable;
  readonly #waiters = new Waiters();
  #isDue = false;

  constructor(table: ServiceTable) {
    this.table = table;
    table.onNews(() => this.#plan());
  }

  /** Bring the table up to date; false while nothing may be said yet. */
  update(): boolean {
    const before = this.table.revision;
    const isReady = this.table.update();
    if (this.table.revision !== before) this.wake();
    return isReady;
  }

  /** Wake all who wait. */
  wake(): void {
    this.#waiters.resolve();
  }

  /** Resolve at the next revision, at a wake, or when the signal aborts. */
  async news(signal: AbortSignal): Promise<void> {
    await this.#waiters.wait(signal);
  }

  #plan(): void {
    if (this.#isDue || this.#waiters.size === 0) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.update();
    });
  }
}

/** The tables of a store: one for each family, while anybody holds it. */
export class StoreTables {
  readonly #store: Store;
  readonly #report: (issue: Issue) => void;
  readonly #entries = new Map<IPFamily, { readonly awaited: AwaitedTable; holders: number }>();

  constructor(store: Store, report: (issue: Issue) => void) {
    this.#store = store;
    this.#report = report;
  }

  /** Hold a family's table; a node-state server that nobody asks has none. */
  acquire(family: IPFamily): AwaitedTable {
    const table = (): ServiceTable => new ServiceTable(this.#store, { family, report: this.#report });
    const entry = this.#entries.get(family) ?? { awaited: new AwaitedTable(table()), holders: 0 };
    entry.holders += 1;
    this.#entries.set(family, entry);
    return entry.awaited;
  }

  /** Which contested addresses rows go without, as far as anybody asks for rows. */
  *issues(): Iterable<Issue> {
    for (const { awaited } of this.#entries.values()) yield* awaited.table.issues();
  }

  /** Let go of a family's table; once for each {@link StoreTables.acquire}. */
  release(family: IPFamily): void {
    const entry = this.#entries.get(family);
    invariant(entry !== undefined, `the table of ${family} is released once more than it was acquired`);
    entry.holders -= 1;
    if (entry.holders > 0) return;
    this.#entries.delete(family);
    entry.awaited.table.close();
  }
}
