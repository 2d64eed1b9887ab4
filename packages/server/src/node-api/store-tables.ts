import { ProxyError, ServiceTable, Waiters, type IPFamily, type Issue, type Store } from "@turnout/core";

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
  settle(): boolean {
    const before = this.table.revision;
    const isReady = this.table.settle();
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
      this.settle();
    });
  }
}

/** The tables of a store: one for each family, while anybody holds it. */
export class StoreTables {
  readonly #store: Store;
  readonly #report: (issue: Issue) => void;
  readonly #held = new Map<IPFamily, { readonly awaited: AwaitedTable; holders: number }>();

  constructor(store: Store, report: (issue: Issue) => void) {
    this.#store = store;
    this.#report = report;
  }

  /** Hold a family's table; a brain that nobody asks has none. */
  hold(family: IPFamily): AwaitedTable {
    const table = (): ServiceTable => new ServiceTable(this.#store, { family, report: this.#report });
    const held = this.#held.get(family) ?? { awaited: new AwaitedTable(table()), holders: 0 };
    held.holders += 1;
    this.#held.set(family, held);
    return held.awaited;
  }

  /** Let go of a family's table; once for each {@link StoreTables.hold}. */
  release(family: IPFamily): void {
    const held = this.#held.get(family);
    if (held === undefined) throw new ProxyError("not_found", "a table was let go that nobody held", { object: family });
    held.holders -= 1;
    if (held.holders > 0) return;
    this.#held.delete(family);
    held.awaited.table.close();
  }
}
