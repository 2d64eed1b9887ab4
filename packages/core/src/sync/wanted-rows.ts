import { fitRow } from "../contract/fit-row.ts";
import type { Capabilities } from "../contract/capabilities.ts";
import { objectId } from "../contract/backend.ts";
import type { Backend, Context, KernelObject } from "../contract/backend.ts";
import { flowsToForget } from "./flows/conntrack.ts";
import type { RowChange } from "./flows/conntrack.ts";
import { ContextReads } from "./context-reads.ts";
import { isEqual } from "../model/equal.ts";
import { isManyEndpoints } from "../model/many-endpoints.ts";
import { invariant } from "../model/errors.ts";
import { Ledger } from "./ledger.ts";
import { WaitingRows } from "./turns/waiting-rows.ts";
import type { ChangeSet, NodeContext, ServicePort } from "../model/rows.ts";
import type { Issue } from "../model/api-objects.ts";
import type { FlowFilter } from "../contract/world.ts";

/** What rows are rendered by. */
type RowBackend<H, K extends KernelObject> = Pick<Backend<H, K, unknown>, "render" | "skeleton" | "isShared" | "keepPlaces">;

/** What a row was when the host last agreed with us. */
interface Baseline<K> {
  readonly row: ServicePort | undefined;
  /** Undefined: the host has not agreed yet since this process began, so it may hold the row in a form of which nothing is known. */
  readonly objects: readonly K[] | undefined;
}

/**
 * The rows a backend should have in force, and the ledger of what that means on the host.
 *
 * Shape: `pending` rows differ from what was last in force. Of them `quarantined` ones are kept back as they were because the host refused them, and
 * waiting ones because their turn has not come: the ledger learns of them in {@link WantedRows.take}.
 * Edges: a row that was in force before this process began is kept back as the host has it.
 */
export class WantedRows<H, K extends KernelObject> {
  readonly ledger: Ledger<K>;
  readonly #backend: RowBackend<H, K>;
  readonly #capabilities: Capabilities | undefined;
  readonly #report: (issue: Issue) => void;
  readonly #rows = new Map<string, ServicePort>();
  readonly #pending = new Map<string, Baseline<K>>();
  readonly #waiting = new WaitingRows();
  readonly #quarantined = new Set<string>();
  /** What is reported of rows that are reduced to what the backend can do. */
  readonly #issues = new Map<string, readonly Issue[]>();
  readonly #reads = new ContextReads();
  #hasCommitted = false;
  /** Of all rows. */
  #endpointCount = 0;
  #host: H;
  #context: Context<H> | undefined;
  /** The same for rows: what they read of it is noted. */
  #rowContext: Context<H> | undefined;

  constructor(
    backend: RowBackend<H, K>,
    host: H,
    options: { readonly capabilities?: Capabilities | undefined; readonly report?: (issue: Issue) => void },
  ) {
    this.ledger = new Ledger<K>(backend.keepPlaces?.bind(backend));
    this.#backend = backend;
    this.#host = host;
    this.#capabilities = options.capabilities;
    this.#report = options.report ?? ((): void => undefined);
  }

  get rows(): ReadonlyMap<string, ServicePort> {
    return this.#rows;
  }

  get node(): NodeContext | undefined {
    return this.#context?.node;
  }

  /** What rows are rendered with; undefined: the node isn't known yet. */
  get context(): Context<H> | undefined {
    return this.#context;
  }

  /** What rows go without because the backend can't do it. */
  *issues(): Iterable<Issue> {
    for (const issues of this.#issues.values()) yield* issues;
  }

  /** Rows not yet in force. */
  get pending(): readonly string[] {
    return [...this.#pending.keys()];
  }

  /** Rows kept as they were because the host refused them. */
  get quarantined(): ReadonlySet<string> {
    return this.#quarantined;
  }

  /** Rows wait for their turn. */
  get areWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether a pending row waits for its turn, and the ledger has it as it was last in force. */
  isUntried(key: string): boolean {
    const [before, now] = [this.#pending.get(key)?.objects, this.ledger.objectsOf(key)];
    return this.#waiting.has(key) && (before === now || (before?.length === 0 && now.length === 0));
  }

  /** Take a change set in. A whole state, and all that comes before one is in force, is wanted at once; other rows wait for {@link WantedRows.take}. */
  accept(changes: ChangeSet): void {
    const kept = new Set(changes.set.map(({ key }) => key));
    const gone = changes.full ? [...this.#rows.keys()].filter((key) => !kept.has(key)) : changes.delete;
    const keys = [...gone, ...kept];
    const before = keys.map((key) => this.#rows.get(key));
    for (const key of keys) this.#remember(key);
    for (const key of gone) {
      this.#take(key, undefined);
      this.#issues.delete(key);
    }
    for (const row of changes.set) this.#take(row.key, this.#fit(row));
    const isAtOnce = changes.full || !this.#hasCommitted;
    // Also rows that are gone, and waited for that.
    const waited = isAtOnce ? this.#waiting.take(Number.POSITIVE_INFINITY).keys : [];
    const nodeAddresses = this.node?.addresses;
    if (!isAtOnce) for (const [index, key] of keys.entries()) this.#waiting.add(key, before[index], this.#rows.get(key), nodeAddresses);
    if (this.#isRenderedAnew(changes.node ?? this.node)) return;
    for (const key of keys) this.#quarantined.delete(key);
    if (isAtOnce) this.#want([...waited, ...keys]);
  }

  /** Want the rows whose turn it is, up to so many entries; says how many they have. */
  take(entriesMax: number): number {
    const { keys, entries } = this.#waiting.take(entriesMax);
    this.#want(keys);
    return entries;
  }

  /** All at once: rows of one change may trade addresses. */
  #want(keys: readonly string[]): void {
    this.ledger.setRows(new Map(keys.map((key) => [key, this.#render(this.#rows.get(key))])));
  }

  /** Render again with new host facts what reads them. */
  setHost(host: H): void {
    if (isEqual(host, this.#host)) return;
    this.#host = host;
    this.#isRenderedAnew(this.node);
  }

  /** Rows of which an object failed. */
  get failing(): ReadonlySet<string> {
    const { failed } = this.ledger;
    return failed.size === 0 ? new Set() : this.ledger.ownersOf(failed.keys());
  }

  /** Leave a pending row as the host has it, in its old form, its new one or something between. */
  suspend(key: string): void {
    this.#waiting.delete(key);
    const before = this.#pending.get(key)?.objects;
    this.ledger.keepRow(key, before && [...before, ...this.#render(this.#rows.get(key))].map(objectId));
  }

  /** Keep a pending row as it was when the host last took it. */
  quarantine(key: string): void {
    this.#quarantined.add(key);
    const before = this.#pending.get(key)?.objects;
    if (before === undefined) return this.ledger.keepRow(key, undefined);
    this.ledger.setRow(key, []);
    // What another row wants in another form is that row's by now.
    this.ledger.setRow(
      key,
      before.filter((object) => this.ledger.isFree(object)),
    );
  }

  /** Leave quarantined rows as the host has them: it refuses what they were, too. */
  leaveQuarantined(): void {
    for (const key of this.#quarantined) this.ledger.keepRow(key, this.#pending.get(key)?.objects?.map(objectId));
  }

  /** Have every row pending that the host does not hold as it should, e.g. because a foreign hand took it: it may be the one that is refused. */
  suspect(): void {
    for (const key of this.ledger.owing()) {
      this.#remember(key);
      this.#waiting.delete(key);
    }
  }

  /** Want a row as it should be. */
  release(key: string): void {
    this.#quarantined.delete(key);
    this.#want([key]);
  }

  /** Rows not yet in force of which the ledger knows, as they were and as they should be. */
  *uncommitted(): Iterable<RowChange> {
    for (const [key, { row }] of this.#pending) if (!this.isUntried(key)) yield { before: row, after: this.#rows.get(key) };
  }

  /** Everything is in force now but for rows that are quarantined, objects that failed, and what was deferred; returns the connections to forget. */
  commit(): readonly FlowFilter[] {
    const changes: RowChange[] = [];
    const { failing } = this;
    if (this.ledger.deferred.size === 0) {
      this.#hasCommitted = true;
      this.ledger.account((object) => this.#backend.isShared?.(object) === true);
    }
    for (const [key, baseline] of this.#pending) {
      if (this.#quarantined.has(key) || this.#waiting.has(key) || this.#isDeferred(key, baseline)) continue;
      const { row } = baseline;
      if (failing.has(key)) {
        this.#pending.set(key, { row, objects: this.ledger.objectsOf(key) });
        continue;
      }
      changes.push({ before: row, after: this.#rows.get(key) });
      this.#pending.delete(key);
    }
    return flowsToForget(changes);
  }

  /** Whether an object that a row has or had was deferred. Of one that is gone, and of which nothing is known, any may be. */
  #isDeferred(key: string, { objects }: Baseline<K>): boolean {
    const { deferred } = this.ledger;
    if (deferred.size === 0) return false;
    if (objects === undefined && !this.#rows.has(key)) return true;
    const isOne = (object: K): boolean => deferred.has(objectId(object));
    return this.ledger.objectsOf(key).some(isOne) || objects?.some(isOne) === true;
  }

  #remember(key: string): void {
    if (this.#pending.has(key)) return;
    this.#pending.set(key, { row: this.#rows.get(key), objects: this.#hasCommitted ? this.ledger.objectsOf(key) : undefined });
  }

  #fit(row: ServicePort): ServicePort | undefined {
    if (this.#capabilities === undefined) return row;
    const { row: fitted, issues } = fitRow(row, this.#capabilities);
    if (issues.length > 0) this.#issues.set(row.key, issues);
    else this.#issues.delete(row.key);
    for (const issue of issues) this.#report(issue);
    return fitted;
  }

  #render(row: ServicePort | undefined): readonly K[] {
    if (row === undefined) return [];
    invariant(this.#rowContext !== undefined, "a change set with rows came before one with the node");
    return this.#backend.render(row, this.#rowContext);
  }

  #take(key: string, row: ServicePort | undefined): void {
    this.#endpointCount += (row?.endpoints.length ?? 0) - (this.#rows.get(key)?.endpoints.length ?? 0);
    if (row === undefined) this.#rows.delete(key);
    else this.#rows.set(key, row);
  }

  /** Where the context is another now, make the skeleton for it, and all rows where they read what has changed in it. Says whether they do. */
  #isRenderedAnew(node: NodeContext | undefined): boolean {
    const before = this.#context;
    if (node === undefined) return false;
    const hasManyEndpoints = isManyEndpoints(this.#endpointCount);
    if (before?.node === node && before.host === this.#host && before.hasManyEndpoints === hasManyEndpoints) return false;
    const context = { node, host: this.#host, hasManyEndpoints };
    this.#context = context;
    this.#rowContext = this.#reads.watch(context);
    const skeleton = this.#backend.skeleton(context);
    const isConcerned = before === undefined || this.#reads.isConcerned(before, context);
    if (isConcerned) this.#renderAll(skeleton);
    else this.ledger.setSkeleton(skeleton);
    return isConcerned;
  }

  /** But for rows that wait for their turn: they are rendered as they were. */
  #renderAll(skeleton: readonly K[]): void {
    // Every row may take a new form, so each may be the one that the host refuses.
    for (const key of this.#rows.keys()) this.#remember(key);
    this.#quarantined.clear();
    const rendered = new Map<string, readonly K[]>();
    for (const [key, row] of this.#rows) if (!this.#waiting.has(key)) rendered.set(key, this.#render(row));
    for (const [key, row] of this.#waiting.before()) rendered.set(key, this.#render(row));
    this.ledger.setAll(skeleton, rendered);
  }
}
