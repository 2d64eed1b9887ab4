import { isEqual } from "../model/equal.ts";
import type { ChangeSet, NodeContext, NodeSettings, ServicePort } from "../model/rows.ts";
import { nodeContextFor } from "../policy/node-context.ts";
import type { IPFamily } from "../model/api-objects.ts";
import type { RecentRows } from "./recent-rows.ts";
import type { RowBlocks, SharedRows } from "./row-blocks.ts";
import type { ServiceLog, ServicePast } from "./service-log.ts";
import { isSameNode, nodeFactsOf } from "./node-place.ts";
import type { NodeFacts } from "./node-place.ts";
import { RowDifference } from "./row-difference.ts";
import type { ServiceVersion } from "./service-version.ts";
import type { Store } from "./store.ts";

/** For whom a view of a table is. */
export interface TableViewOptions {
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** Canonical; goes before the node's own addresses of its family, as the primary one. */
  readonly bindAddress?: string;
}

/** What changed of a node's state since a revision of its table. */
export interface NodeChanges extends Omit<ChangeSet, "instance" | "family"> {
  /** With everything that was asked for apart: rows as most nodes have them. Rows of `set` take the place of those with the same keys. */
  readonly shared?: readonly SharedRows[];
}

/** What a view uses of its table. */
export interface TableParts {
  readonly family: IPFamily;
  readonly store: Store;
  readonly log: ServiceLog;
  readonly recent: RecentRows;
  readonly versions: ReadonlyMap<string, ServiceVersion>;
  readonly blocks: RowBlocks;
  revision(): number;
  closed(view: TableView): void;
}

/** Where the node stood, from which revision on. */
interface NodeEpoch {
  readonly from: number;
  readonly node: NodeFacts;
}

/** A difference that was worked out. */
interface CachedDifference {
  readonly since: number;
  readonly revision: number;
  readonly changes: NodeChanges | undefined;
}

/** Changes of the node that are remembered; who is behind more needs everything. */
const EPOCHS_MAX = 16;

/** One node's state, as a view of a table: it holds what it knows of the node, and no row. */
export class TableView {
  readonly #table: TableParts;
  readonly #options: TableViewOptions;
  /** Oldest first, never empty. */
  #epochs: readonly NodeEpoch[];
  /** The latest difference: all watchers of the node ask for the same at about the same time. */
  #latest: WeakRef<CachedDifference> | undefined;

  constructor(table: TableParts, options: TableViewOptions) {
    this.#table = table;
    this.#options = options;
    this.#epochs = [{ from: table.revision(), node: nodeFactsOf(this.#makeContext()) }];
  }

  /** The node, as of the table's revision. */
  get context(): NodeContext {
    return this.#now.node.context;
  }

  /** Stop being told of the node. */
  close(): void {
    this.#table.closed(this);
  }

  /** Look at the node again; returns whether it is another, from `revision` on. */
  refresh(revision: number): boolean {
    const context = this.#makeContext();
    if (isEqual(context, this.context)) return false;
    this.#epochs = [...this.#epochs, { from: revision, node: nodeFactsOf(context) }].slice(-EPOCHS_MAX);
    return true;
  }

  /**
   * Tell what changed since a revision of the table, up to its present one; everything when `since` is undefined or
   * further back than is known, with `isApart` in blocks. Undefined: nothing of this node's.
   */
  changesSince(since: number | undefined, isApart = false): NodeChanges | undefined {
    const { log, revision } = this.#table;
    const then = since === undefined || since > revision() || !log.reaches(since) ? undefined : this.#epochAt(since)?.node;
    if (since === undefined || then === undefined) return isApart ? this.#everythingApart() : this.#everything();
    const latest = this.#latest?.deref();
    if (latest?.since === since && latest.revision === revision()) return latest.changes;
    const answer = { since, revision: revision(), changes: this.#difference(since, then) };
    this.#latest = new WeakRef(answer);
    return answer.changes;
  }

  #difference(since: number, then: NodeFacts): NodeChanges | undefined {
    const { log, versions, recent, revision } = this.#table;
    const now = this.#now.node;
    const found = new RowDifference();
    const pasts = log.since(since);
    for (const [key, past] of pasts) this.#compare(past, versions.get(key), then, found);
    if (!isSameNode(then, now)) {
      for (const [key, version] of versions) if (!pasts.has(key)) found.add(version.rowsAt(then, recent), version.rowsAt(now, recent));
    }
    const isNode = then !== now && !isEqual(then.context, now.context);
    if (!isNode && found.set.length === 0 && found.delete.length === 0) return undefined;
    return {
      revision: revision(),
      full: false,
      ...(isNode ? { node: now.context } : {}),
      set: found.set,
      delete: found.delete,
      triggersMs: found.triggersMs,
    };
  }

  get #now(): NodeEpoch {
    return this.#epochs[this.#epochs.length - 1] as NodeEpoch;
  }

  #epochAt(revision: number): NodeEpoch | undefined {
    return this.#epochs.findLast(({ from }) => from <= revision);
  }

  #makeContext(): NodeContext {
    const { store, family } = this.#table;
    const { nodeName, settings, bindAddress } = this.#options;
    const node = store.lastingNode(nodeName);
    return nodeContextFor({ name: nodeName, family, settings, node, serviceCIDRs: store.serviceCIDRs(), bindAddress });
  }

  #everything(): NodeChanges {
    const { versions, recent, revision } = this.#table;
    const set: ServicePort[] = [];
    for (const version of versions.values()) for (const row of version.rowsAt(this.#now.node, recent)) set.push(row);
    return { revision: revision(), full: true, node: this.context, set, delete: [], triggersMs: [] };
  }

  #everythingApart(): NodeChanges {
    const { blocks, versions, revision } = this.#table;
    const { node } = this.#now;
    const knowing = blocks.knowing(node.context.name);
    // In a cluster of a few nodes each Service has endpoints on each: there is little to share.
    if (knowing.size > versions.size / 2) return this.#everything();
    const set: ServicePort[] = [];
    for (const version of knowing.values()) set.push(...version.ownRowsAt(node));
    return { revision: revision(), full: true, node: this.context, set, delete: [], triggersMs: [], shared: blocks.sharedAt(node) };
  }

  #compare({ before, rowKeys, triggersMs }: ServicePast, version: ServiceVersion | undefined, then: NodeFacts, found: RowDifference): void {
    const { recent } = this.#table;
    const rows = version?.rowsAt(this.#now.node, recent) ?? [];
    const isNew = before === undefined ? found.replace(rowKeys, rows) : found.add(before.version?.rowsAt(then, recent) ?? [], rows);
    if (isNew) for (const triggerMs of triggersMs) found.triggersMs.push(triggerMs);
  }
}
