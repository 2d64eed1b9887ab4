import type { Delivery, Eligibility } from "@turnout/client/protocol";
import { isEqual, ProxyError, type IPFamily, type NodeChanges, type TableView } from "@turnout/core";
import type { Cursor, NodeStateRequest, StateView } from "./state-view.ts";
import type { AwaitedTable, StoreTables } from "./store-tables.ts";

/** What a view of a store is made of. */
export interface StoreViewOptions {
  readonly tables: StoreTables;
  readonly request: NodeStateRequest;
  readonly family: IPFamily;
  /** Identity of this history; never used again for another. */
  readonly instance: string;
  readonly eligibility: Eligibility;
}

/**
 * One node's state in one family as a store has it, for however many watchers.
 *
 * Shape: revisions are those of the table that all nodes' views share; what a watcher does not have is worked out from
 * its cursor when it asks, so a view holds the node's context and no row.
 */
export class StoreView implements StateView {
  readonly #options: StoreViewOptions;
  readonly #awaited: AwaitedTable;
  readonly #view: TableView;
  #eligibility: Eligibility;
  #eligibilityRevision = 0;
  #isClosed = false;

  constructor(options: StoreViewOptions) {
    const { tables, family, request } = options;
    const { nodeName, settings, bindAddress } = request;
    this.#options = options;
    this.#eligibility = options.eligibility;
    this.#awaited = tables.acquire(family);
    this.#view = this.#awaited.table.view({ nodeName, settings, ...(bindAddress === "" ? {} : { bindAddress }) });
  }

  /** What it answers. */
  get request(): NodeStateRequest {
    return this.#options.request;
  }

  /** {@inheritDoc StateView.next} */
  async next(cursor: Cursor, signal: AbortSignal, isApart = false): Promise<Delivery> {
    const { instance } = this.#options;
    // The table's view knows which revisions it can go on from.
    let since = cursor.instance === instance ? cursor.revision : undefined;
    for (;;) {
      if (signal.aborted || this.#isClosed) throw new ProxyError("canceled", "watching the node state was stopped");
      if (this.#awaited.update()) {
        const changes = this.#changesSince(since, isApart);
        if (changes !== undefined) return this.#delivery(changes, since);
        // Nothing of this node's up to here: later differences are to this.
        since = this.#awaited.table.revision;
      }
      await this.#awaited.news(signal);
    }
  }

  /** The node's eligibility is this now. */
  setEligibility(eligibility: Eligibility): void {
    if (isEqual(eligibility, this.#eligibility)) return;
    this.#eligibility = eligibility;
    // Before the first state there is nothing it could be a change of.
    if (this.#awaited.table.revision === 0) return;
    this.#eligibilityRevision = this.#awaited.table.advance();
    this.#awaited.wake();
  }

  /** {@inheritDoc StateView.close} */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#awaited.wake();
    this.#view.close();
    this.#options.tables.release(this.#options.family);
  }

  #changesSince(since: number | undefined, isApart: boolean): NodeChanges | undefined {
    const changes = this.#view.changesSince(since, isApart);
    if (changes !== undefined || since === undefined || this.#eligibilityRevision <= since) return changes;
    return { revision: this.#awaited.table.revision, full: false, set: [], delete: [], triggersMs: [] };
  }

  #delivery({ shared, ...changes }: NodeChanges, since: number | undefined): Delivery {
    const { instance, family } = this.#options;
    const isNews = changes.full || since === undefined || this.#eligibilityRevision > since;
    const eligibility = isNews ? this.#eligibility : undefined;
    return { changes: { instance, family, ...changes }, eligibility, ...(shared === undefined ? {} : { shared }) };
  }
}
