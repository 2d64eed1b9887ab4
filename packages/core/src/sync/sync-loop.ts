import type { Backend, KernelObject } from "../contract/backend.ts";
import type { Capabilities } from "../contract/capabilities.ts";
import { changingDestinations } from "./conntrack.ts";
import { ProxyError } from "../model/errors.ts";
import { FlowForgetter } from "./flow-forgetter.ts";
import { HostLink } from "./host-link.ts";
import type { AppliedCount } from "./host-link.ts";
import type { ChangeSet, Feed, NodeContext, ServicePort } from "../model/rows.ts";
import type { IPFamily, Issue } from "../model/api-objects.ts";
import type { SyncObserver } from "./observer.ts";
import { FIRST_RETRY_MS, Reconciler } from "./reconciler.ts";
import { WantedRows } from "./wanted-rows.ts";
import type { Clock, Log } from "../contract/world.ts";

/** What a sync loop works with. Intervals in ms. */
export interface SyncLoopOptions<H, K extends KernelObject, S> {
  readonly backend: Backend<H, K, S>;
  readonly feed: Feed;
  readonly family: IPFamily;
  readonly host: H;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
  /** Between the end of one sync and the start of the next. */
  readonly minIntervalMs: number;
  /** After this long everything is compared with the host again; later where comparing takes more than a tenth of it. */
  readonly maxIntervalMs: number;
  /** Longest wait after a failure. */
  readonly retryMs: number;
  /** Called with each plan as text instead of applying it. */
  readonly dryRun?: (text: string) => void;
  /** Rows are reduced to these; absent: the backend can do everything. */
  readonly capabilities?: Capabilities;
  readonly report?: (issue: Issue) => void;
}

/** Comparing everything takes up to this share of the time. */
const COMPARING_SHARE = 0.1;
/** What lingers is stayed for this long, in ms, for what lingers: packets under way need a second, what others still use may need for ever. */
const FINISH_MS = 5_000;

/**
 * Keeps one family of one host in step with a feed.
 *
 * Shape: the first change after quiet runs at once, then at least `minIntervalMs` lie between syncs; what arrives in
 * between is merged by the feed. A failure is retried with doubling waits up to `retryMs`.
 * Edges: nothing is dropped, and what the host refuses concerns nothing else, see {@link Reconciler}.
 */
export class SyncLoop<H, K extends KernelObject, S> {
  readonly #options: SyncLoopOptions<H, K, S>;
  readonly #wanted: WantedRows<H, K>;
  readonly #hostLink: HostLink<H, K, S>;
  readonly #reconciler: Reconciler<H, K, S>;
  readonly #forgetter: FlowForgetter;
  #next: Promise<ChangeSet> | undefined;
  #host: H;
  #failures = 0;
  #triggersMs: number[] = [];
  /** When to sync although nothing changes. */
  #dueMs = Number.POSITIVE_INFINITY;
  /** When the backend wants to finish off what lingers. */
  #revisitMs = Number.POSITIVE_INFINITY;
  /** When to compare everything with the host. */
  #auditDueMs = Number.POSITIVE_INFINITY;
  #lastEndMs: number | undefined;
  #lastSuccessMs: number | undefined;
  #pendingSinceMs: number | undefined;
  #lastError: ProxyError | undefined;
  #wake: (() => void) | undefined;

  constructor(options: SyncLoopOptions<H, K, S>) {
    this.#options = options;
    const { backend, host, family, clock, log, observer, retryMs, dryRun, capabilities, report } = options;
    this.#host = host;
    this.#wanted = new WantedRows(backend, host, { capabilities, ...(report === undefined ? {} : { report }) });
    const onRevisit = (afterMs: number): void => void (this.#revisitMs = Math.min(this.#revisitMs, clock.nowMs() + afterMs));
    this.#hostLink = new HostLink({ backend, ledger: this.#wanted.ledger, family, clock, log, dryRun, onRevisit });
    this.#reconciler = new Reconciler({ wanted: this.#wanted, hostLink: this.#hostLink, family, clock, log, observer, retryMs });
    this.#forgetter = new FlowForgetter(options);
  }

  /** Rows as they should be in force. */
  get rows(): ReadonlyMap<string, ServicePort> {
    return this.#wanted.rows;
  }

  get node(): NodeContext | undefined {
    return this.#wanted.node;
  }

  /** When a sync last succeeded, ms since the epoch. */
  get lastSuccessMs(): number | undefined {
    return this.#lastSuccessMs;
  }

  /** Since when a change has been waiting to be in force; undefined: none is. */
  get pendingSinceMs(): number | undefined {
    return this.#pendingSinceMs;
  }

  get lastError(): ProxyError | undefined {
    return this.#lastError;
  }

  /** Render everything again with new host facts, soon: with the next sync, never in the middle of one. */
  setHost(host: H): void {
    this.#host = host;
    this.#hurry();
  }

  /** Compare everything with the host, soon: somebody touched it. */
  audit(): void {
    this.#hostLink.distrust();
    this.#hurry();
  }

  /** Sync until aborted. Never rejects for operating errors. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const rest = (this.#lastEndMs ?? Number.NEGATIVE_INFINITY) + this.#options.minIntervalMs - this.#options.clock.nowMs();
      if (rest > 0) await this.#options.clock.sleep(rest, signal);
      const isDue = await this.#waitForWork(signal);
      if (signal.aborted) break;
      if (!isDue) continue;
      if (this.node === undefined) this.#dueMs = Number.POSITIVE_INFINITY;
      else await this.#sync(signal);
    }
    await this.#forgetter.idle(signal);
  }

  /** Sync once. @throws {ProxyError} what the sync failed with (also if only some rows were refused), or `canceled`. */
  async once(signal: AbortSignal): Promise<void> {
    this.#take(await this.#options.feed.next(signal));
    const error = await this.#sync(signal);
    if (error !== undefined) throw error;
    await this.#forgetter.idle(signal);
    const { rows, objects } = this.#reconciler.refused;
    const refused = [...rows, ...objects];
    if (refused.length > 0)
      throw new ProxyError("tool_failed", "the host refused what is wanted of it", {
        object: refused.join(", "),
        hint: "the rest is in force, see the log",
      });
  }

  /** Stay for what the backend soon finishes off, where no `run` will. @throws {ProxyError} as {@link SyncLoop.once}. */
  async finish(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.nowMs() + FINISH_MS;
    while (this.#revisitMs <= untilMs) {
      await clock.sleep(this.#revisitMs - clock.nowMs(), signal);
      if (signal.aborted) throw new ProxyError("canceled", "sync was stopped");
      const error = await this.#sync(signal);
      if (error !== undefined) throw error;
    }
  }

  #hurry(): void {
    this.#dueMs = this.#options.clock.nowMs();
    this.#wake?.();
  }

  /** Wait for a change (and take it in), a due time, or the end; false when there is nothing to do. */
  async #waitForWork(signal: AbortSignal): Promise<boolean> {
    const { clock, feed, log } = this.#options;
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const stopSleep = new AbortController();
    const stop = (): void => wake();
    signal.addEventListener("abort", stop, { once: true });
    this.#wake = wake;
    this.#next ??= feed.next(signal);
    const waits: Promise<ChangeSet | void>[] = [this.#next, woken];
    if (Number.isFinite(this.#dueMs)) waits.push(clock.sleep(Math.max(0, this.#dueMs - clock.nowMs()), stopSleep.signal));
    let changes: ChangeSet | void = undefined;
    try {
      changes = await Promise.race(waits);
      if (changes !== undefined) this.#next = undefined;
    } catch (error) {
      this.#next = signal.aborted ? undefined : this.#askAgain(signal);
      const { message } = ProxyError.from(error, "feed_lost", "feed lost");
      if (!signal.aborted) log.warn("the feed of node state was lost, rules stay as they are", { error: message });
      return false;
    } finally {
      this.#wake = undefined;
      signal.removeEventListener("abort", stop);
      stopSleep.abort();
    }
    // Outside of the try: what a backend's render throws is a defect, and ends the process.
    if (changes !== undefined) this.#take(changes);
    return true;
  }

  /** Ask a lost feed again after a while; drift is mended and what is due done meanwhile. */
  #askAgain(signal: AbortSignal): Promise<ChangeSet> {
    const { clock, feed, retryMs } = this.#options;
    const next = clock.sleep(retryMs, signal).then(() => feed.next(signal));
    // Looked at by the next wait; should it fail before, that must not count as unhandled.
    void Promise.allSettled([next]);
    return next;
  }

  #take(changes: ChangeSet): void {
    const { clock, family, observer } = this.#options;
    const atMs = clock.nowMs();
    this.#pendingSinceMs ??= atMs;
    observer.queued({ family, atMs });
    this.#triggersMs.push(...changes.triggersMs);
    this.#wanted.take(changes);
  }

  /** Bring the host in step; resolves to what went wrong, if anything. */
  async #sync(signal: AbortSignal): Promise<ProxyError | undefined> {
    const { clock, family, observer, log, backend } = this.#options;
    const startMs = clock.nowMs();
    if (startMs >= this.#auditDueMs) this.#hostLink.distrust();
    const isFull = !this.#hostLink.isKnown;
    if (isFull) this.#auditDueMs = startMs + this.#options.maxIntervalMs;
    this.#dueMs = this.#auditDueMs;
    this.#revisitMs = Number.POSITIVE_INFINITY;
    this.#wanted.setHost(this.#host);
    // From here on the new rules may let flows in that the old rows say should go.
    this.#forgetter.withhold(changingDestinations(this.#wanted.unsettled()));
    try {
      const count = await this.#reconciler.reconcile(signal);
      this.#succeeded(isFull, startMs, count);
      return undefined;
    } catch (cause) {
      if (signal.aborted) return new ProxyError("canceled", "sync was stopped", { cause });
      // What isn't an operating error is a defect of ours or the backend's, and ends the process; rules stay.
      if (!ProxyError.is(cause)) throw cause;
      const error = cause;
      this.#hostLink.distrust();
      this.#lastError = error;
      // Also when nothing changed: what the host lost and can't be given back is waiting too.
      this.#pendingSinceMs ??= startMs;
      this.#dueMs = clock.nowMs() + Math.min(this.#options.retryMs, FIRST_RETRY_MS * 2 ** this.#failures++);
      observer.failed({ family, full: isFull, durationMs: clock.nowMs() - startMs, error, atMs: clock.nowMs() });
      log.error(error.message, { family, retryInMs: Math.round(this.#dueMs - clock.nowMs()) });
      return error;
    } finally {
      this.#lastEndMs = clock.nowMs();
      for (const id of this.#wanted.ledger.defects)
        log.error("the backend wants one object in two forms", { object: id, backend: backend.constructor.name });
    }
  }

  #succeeded(isFull: boolean, startMs: number, { put, removed }: AppliedCount): void {
    const { clock, family, observer } = this.#options;
    const atMs = clock.nowMs();
    this.#failures = 0;
    if (isFull) this.#auditDueMs = Math.max(this.#auditDueMs, startMs + (atMs - startMs) / COMPARING_SHARE);
    this.#dueMs = Math.min(this.#auditDueMs, this.#revisitMs, this.#reconciler.retryAtMs ?? Number.POSITIVE_INFINITY);
    this.#lastError = undefined;
    this.#lastSuccessMs = atMs;
    this.#pendingSinceMs = undefined;
    const triggersMs = this.#triggersMs;
    this.#triggersMs = [];
    const objects = this.#wanted.ledger.appliedCount;
    const { hasLooked, drifted } = this.#hostLink.takeFindings();
    const full = isFull || hasLooked;
    observer.synced({ family, full, durationMs: atMs - startMs, triggersMs, put, removed, drifted, objects, atMs });
    const flows = this.#wanted.settled();
    if (this.#options.dryRun === undefined) this.#forgetter.forget(flows);
  }
}
