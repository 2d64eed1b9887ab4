import type { Backend, Context, KernelObject, LeftObjects } from "../contract/backend.ts";
import type { Capabilities } from "../contract/capabilities.ts";
import { changingDestinations } from "./flows/conntrack.ts";
import { FeedReader } from "./feed-reader.ts";
import { isEqual } from "../model/equal.ts";
import { ProxyError, type ErrorCode } from "../model/errors.ts";
import { FlowForgetter } from "./flows/flow-forgetter.ts";
import { HostLink, type AppliedCount } from "./host-link.ts";
import type { ChangeSet, Feed, NodeContext, ServicePort } from "../model/rows.ts";
import type { IPFamily, Issue } from "../model/api-objects.ts";
import type { SyncObserver } from "./observer.ts";
import { Progress } from "./progress.ts";
import { Readiness } from "./readiness.ts";
import { Reconciler, type Refusal } from "./reconciler.ts";
import { RollingAudit } from "./rolling-audit.ts";
import { Schedule, type ScheduleOptions } from "./schedule.ts";
import { TurnBudget } from "./turns/turn-budget.ts";
import { WantedRows } from "./wanted-rows.ts";
import type { Clock, Log } from "../contract/world.ts";

/** What a sync loop works with. Intervals in ms. */
export interface SyncLoopOptions<H, K extends KernelObject, S> extends ScheduleOptions {
  readonly backend: Backend<H, K, S>;
  readonly feed: Feed;
  readonly family: IPFamily;
  readonly host: H;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
  /** How long a backend should take at most for one plan before it defers the rest; default 1000. */
  readonly turnMs?: number;
  /** Called with each plan as text instead of applying it. */
  readonly dryRun?: (text: string) => void;
  /** Rows are reduced to these; absent: the backend can do everything. */
  readonly capabilities?: Capabilities;
  readonly report?: (issue: Issue) => void;
}

/** Of a second changes can wait that come while thousands of calls are made one after the other. */
const TURN_MS = 1_000;

/** What lingers is stayed for this long, in ms: packets under way need a second, what others still use may need for ever. */
const FINISH_MS = 5_000;

/** Failures that no later attempt changes. */
const LASTING: readonly ErrorCode[] = ["invalid_object", "host_unsupported", "tool_missing", "permission_denied", "restart_needed"];

/**
 * Keeps one family of one host in step with a feed.
 *
 * Shape: the first change after quiet runs at once, then at least `minIntervalMs` lie between syncs; what arrives in
 * between is merged by the feed. A failure is retried with doubling waits up to `retryMs`. Where rows wait for their turn, or the backend deferred
 * something, the next sync follows at once, with what came meanwhile.
 * Edges: nothing is dropped, and what the host refuses concerns nothing else, see {@link Reconciler}.
 */
export class SyncLoop<H, K extends KernelObject, S> {
  readonly readiness: Readiness<K>;
  readonly #options: SyncLoopOptions<H, K, S>;
  readonly #wanted: WantedRows<H, K>;
  readonly #hostLink: HostLink<H, K, S>;
  readonly #reconciler: Reconciler<H, K, S>;
  readonly #forgetter: FlowForgetter;
  readonly #reader: FeedReader;
  readonly #schedule: Schedule;
  readonly #audit: RollingAudit<H, K, S>;
  readonly #progress = new Progress();
  readonly #budget: TurnBudget;
  #host: H;
  /** What somebody left of what the host held, one thing after another, since the last sync. */
  #left: LeftObjects[] = [];

  constructor(options: SyncLoopOptions<H, K, S>) {
    this.#options = options;
    const { backend, host, family, clock, log, observer, retryMs, dryRun, capabilities, report, turnMs = TURN_MS } = options;
    this.#host = host;
    this.#budget = new TurnBudget(turnMs);
    this.#wanted = new WantedRows(backend, host, { capabilities, ...(report === undefined ? {} : { report }) });
    const isRefusing = (): boolean => this.#reconciler.retryAtMs !== undefined;
    const { ledger } = this.#wanted;
    this.readiness = new Readiness({ backend, ledger, clock, retryMs, isRefusing, waitingRows: () => this.waitingRows });
    this.#hostLink = new HostLink({ backend, ledger: this.#wanted.ledger, family, clock, log, dryRun, turnMs });
    this.#reconciler = new Reconciler({ wanted: this.#wanted, hostLink: this.#hostLink, family, clock, log, observer, retryMs });
    this.#forgetter = new FlowForgetter(options);
    this.#reader = new FeedReader(options);
    this.#schedule = new Schedule(options);
    this.#audit = new RollingAudit({ backend, ledger: this.#wanted.ledger, family, clock, log, retryMs });
  }

  /** Rows as they should be in force. */
  get rows(): ReadonlyMap<string, ServicePort> {
    return this.#wanted.rows;
  }

  get node(): NodeContext | undefined {
    return this.#wanted.node;
  }

  /** What rows are rendered with; undefined: the node isn't known yet. */
  get context(): Context<H> | undefined {
    return this.#wanted.context;
  }

  /** How many objects the host holds, as far as is known. */
  get objectCount(): number {
    return this.#wanted.ledger.appliedCount;
  }

  /** Rows that are not in force as they should be and that the host has not refused. Costs what there is of them. */
  get waitingRows(): readonly string[] {
    const { quarantined, failing } = this.#wanted;
    return this.#wanted.pending.filter((key) => !quarantined.has(key) && !failing.has(key));
  }

  /** What the host refuses now, and what it said. */
  get refusals(): readonly Refusal[] {
    return this.#reconciler.refusals;
  }

  /** The rows that own an object, by its identity. */
  ownersOf(object: string): ReadonlySet<string> {
    return this.#wanted.ledger.ownersOf([object]);
  }

  /** What was reported about API objects and still holds, as far as this process knows. */
  *issues(): Iterable<Issue> {
    yield* this.#options.feed.issues?.() ?? [];
    yield* this.#wanted.issues();
  }

  /** When a sync last succeeded with nothing deferred, ms since the epoch. */
  get lastSuccessMs(): number | undefined {
    return this.#progress.lastSuccessMs;
  }

  /** Since when a change has been waiting to be in force; undefined: none is. */
  get pendingSinceMs(): number | undefined {
    return this.#progress.pendingSinceMs;
  }

  get lastError(): ProxyError | undefined {
    return this.#progress.lastError;
  }

  /**
   * Render again with new host facts what reads them, soon: with the next sync, never in the middle of one. Says whether they are new; facts that
   * are equal to those known change nothing.
   */
  setHost(host: H): boolean {
    if (isEqual(host, this.#host)) return false;
    this.#host = host;
    this.#hurry();
    return true;
  }

  /** Compare everything with the host, soon: somebody touched it. */
  audit(): void {
    this.#hostLink.distrust();
    this.#hurry();
  }

  /** Mend objects of which somebody left so much, soon, without comparing: nothing else was touched. */
  fix(left: LeftObjects): void {
    this.#left.push(left);
    this.#hurry();
  }

  /** Sync until aborted. Never rejects for operating errors. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const schedule = this.#schedule;
    while (!signal.aborted) {
      const restMs = schedule.restMs(clock.nowMs());
      if (restMs > 0) await clock.sleep(restMs, signal);
      const heard = await this.#reader.wait(Math.min(schedule.dueMs, this.#auditDueMs()), signal);
      if (signal.aborted) break;
      if (heard === "lost") continue;
      if (heard !== "due") this.#accept(heard);
      else if (clock.nowMs() < schedule.dueMs && !(await this.#isSliceTouched(signal))) continue;
      if (this.node === undefined) schedule.idle();
      else await this.#sync(signal);
    }
    await this.#forgetter.idle(signal);
  }

  /**
   * Sync once, in as many turns as it takes. A sync that failed `retries` until it succeeds or `signal` aborts; what no later attempt can change fails at once.
   * @throws {ProxyError} what it failed with last (also if only some rows were refused), or `canceled`.
   */
  async once(signal: AbortSignal, failing: "throws" | "retries" = "throws"): Promise<void> {
    this.#accept(await this.#options.feed.next(signal));
    await this.#syncFully(signal, failing);
    await this.#forgetter.idle(signal);
    const { failed } = this.#wanted.ledger;
    const refused = [...this.#reconciler.refused.rows, ...Array.from(failed, ([id, error]) => `${id} (${error.message})`)];
    if (refused.length > 0)
      throw new ProxyError("tool_failed", "the host refused what is wanted of it", {
        object: refused.join(", "),
        hint: "the rest is in force, see the log",
      });
  }

  /** Stay for what the backend soon finishes off, where no `run` will. @throws {ProxyError} as {@link SyncLoop.once}. */
  async finish(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const { ledger } = this.#wanted;
    const untilMs = clock.nowMs() + FINISH_MS;
    while (ledger.lingeringDueMs <= untilMs) {
      await clock.sleep(ledger.lingeringDueMs - clock.nowMs(), signal);
      if (signal.aborted) throw new ProxyError("canceled", "sync was stopped");
      await this.#syncFully(signal);
    }
  }

  #hurry(): void {
    this.#schedule.hurry(this.#options.clock.nowMs());
    this.#reader.wake();
  }

  /** When to look at a part of the host, ms since the epoch. Nothing is looked at before everything was, nor where everything will be. */
  #auditDueMs(): number {
    return this.#hostLink.isKnown && this.#options.dryRun === undefined ? this.#audit.dueMs : Number.POSITIVE_INFINITY;
  }

  /** Look at the next part of the host, if it is time: whether somebody has touched it, so that it has to be mended. */
  async #isSliceTouched(signal: AbortSignal): Promise<boolean> {
    if (this.#options.clock.nowMs() < this.#auditDueMs()) return false;
    const left = await this.#audit.lookAtSlice(signal);
    if (left.size > 0) this.#left.push(left);
    return left.size > 0;
  }

  #accept(changes: ChangeSet): void {
    const { clock, family, observer } = this.#options;
    const atMs = clock.nowMs();
    this.#progress.queued(atMs, changes, this.rows.keys());
    this.readiness.heard(changes.set);
    observer.queued({ family, atMs, changes });
    this.#wanted.accept(changes);
  }

  /** @throws {ProxyError} what a sync failed with last, or `canceled`. */
  async #syncFully(signal: AbortSignal, failing: "throws" | "retries" = "throws"): Promise<void> {
    let failure: ProxyError | undefined;
    do {
      const error = await this.#sync(signal);
      if (error !== undefined && signal.aborted) throw failure ?? error;
      if (error !== undefined && (failing === "throws" || LASTING.includes(error.code))) throw error;
      failure = error;
      if (error !== undefined) await this.#options.clock.sleep(this.#schedule.dueMs - this.#options.clock.nowMs(), signal);
    } while (failure !== undefined || this.#schedule.isUnfinished);
  }

  /** Bring the host in step, as far as can be done in a turn; resolves to what went wrong, if anything. */
  async #sync(signal: AbortSignal): Promise<ProxyError | undefined> {
    const { clock, family, observer, log, backend } = this.#options;
    const schedule = this.#schedule;
    const startMs = clock.nowMs();
    if (schedule.isAuditDue(startMs)) this.#hostLink.distrust();
    for (const left of this.#left.splice(0)) this.#hostLink.trust(left);
    const isFull = !this.#hostLink.isKnown;
    schedule.began(startMs, isFull);
    this.#wanted.setHost(this.#host);
    const entries = this.#wanted.take(this.#budget.entries);
    // From here on the new rules may let flows in that the old rows say should go.
    this.#forgetter.postpone(changingDestinations(this.#wanted.uncommitted()));
    try {
      const count = await this.#reconciler.reconcile(signal);
      // What looking at the host took says nothing of a turn.
      if (!isFull) this.#budget.took(entries, count.put + count.removed, clock.nowMs() - startMs);
      this.#succeeded(isFull, startMs, count);
      return undefined;
    } catch (error) {
      if (signal.aborted) return new ProxyError("canceled", "sync was stopped", { cause: error });
      // What isn't an operating error is a defect of ours or the backend's, and ends the process; rules stay.
      if (!ProxyError.is(error)) throw error;
      const atMs = clock.nowMs();
      this.readiness.synced("failed");
      this.#hostLink.distrust();
      this.#progress.failed(startMs, error);
      const retryInMs = schedule.failed(atMs);
      observer.failed({ family, full: isFull, durationMs: atMs - startMs, error, atMs });
      log.error(error.message, { family, retryInMs });
      return error;
    } finally {
      for (const id of this.#wanted.ledger.defects)
        log.error("the backend wants one object in two forms", { object: id, backend: backend.constructor.name });
    }
  }

  #succeeded(isFull: boolean, startMs: number, { put, removed, deferred }: AppliedCount): void {
    const { clock, family, observer } = this.#options;
    const { ledger } = this.#wanted;
    const atMs = clock.nowMs();
    const { hasLooked, lookingMs, hasRepaired: repaired, drifted, driftedSome } = this.#hostLink.drainFindings();
    const isUnfinished = deferred > 0 || this.#wanted.areWaiting;
    if (isUnfinished) this.#schedule.paused(atMs);
    else this.#schedule.succeeded(atMs, Math.min(ledger.lingeringDueMs, this.#reconciler.retryAtMs ?? Number.POSITIVE_INFINITY), lookingMs);
    const flows = this.#wanted.commit();
    const settled = this.#progress.synced(atMs, isUnfinished ? this.waitingRows : undefined);
    const counts = { put, removed, deferred, objects: ledger.appliedCount };
    const found = { full: isFull || hasLooked, drifted, driftedSome, repaired };
    observer.synced({ family, atMs, durationMs: atMs - startMs, ...counts, ...found, ...settled });
    this.readiness.synced("succeeded");
    const changing = changingDestinations(deferred > 0 ? this.#wanted.uncommitted() : []);
    if (this.#options.dryRun === undefined) this.#forgetter.forget(flows, changing);
  }
}
