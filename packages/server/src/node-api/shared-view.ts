import type { Delivery, Eligibility } from "@turnout/client/protocol";
import {
  isEqual,
  ProxyError,
  RevisionLog,
  Waiters,
  type ChangeSet,
  type Feed,
  type IPFamily,
  type NodeContext,
  type ServicePort,
} from "@turnout/core";
import type { NodeRows } from "./common-rows.ts";
import type { Cursor, StateView } from "./state-view.ts";

/** When the changes of one revision were triggered. */
interface Triggers {
  readonly revision: number;
  readonly timesMs: readonly number[];
}

/** Revisions that are remembered; the times are samples of latency, and those of the oldest half may go. */
const REVISIONS_MAX = 1_000;

/** When the changes since a revision were triggered, ms since the epoch. Bounded. */
class TriggerLog {
  #triggers: Triggers[] = [];

  /** Note when a revision's changes were triggered; revisions only grow. */
  add(revision: number, timesMs: readonly number[]): void {
    if (timesMs.length > 0) this.#triggers.push({ revision, timesMs });
    if (this.#triggers.length > REVISIONS_MAX) this.#triggers = this.#triggers.slice(-REVISIONS_MAX / 2);
  }

  /** The times of all revisions after `revision`. */
  since(revision: number): readonly number[] {
    return this.#triggers.filter((one) => one.revision > revision).flatMap(({ timesMs }) => timesMs);
  }
}

/** What a shared view is made of. */
export interface SharedViewOptions {
  /** Pulled only while a watcher waits. */
  readonly feed: Feed;
  /** Empty; what the feed tells goes in here, and it is closed with the view. */
  readonly rows: NodeRows;
  readonly family: IPFamily;
  /** Identity of this history; never used again for another. */
  readonly instance: string;
  readonly eligibility: Eligibility;
  /** Changes that are remembered at least; default 1,024. */
  readonly changesKept?: number | undefined;
}

/** The first state's revision. */
const FIRST = 1;
const CHANGES_KEPT = 1_024;
/** Whoever is behind by more than this part of all rows is told everything: changes are remembered for each node, rows once for all. */
const CHANGES_PART = 1 / 8;

/**
 * One node's state in one family as a feed tells it, for however many watchers: what a relay has of the node-state server behind it.
 *
 * Shape: revisions count what was pulled from the feed; a watcher is a {@link Cursor} it brings along, and costs nothing
 * here while it does not ask. What happens while none asks is merged by the feed; while some ask, by the log. A feed that
 * rejects refuses those who ask at that moment; whoever asks next has it asked again.
 */
export class SharedView implements StateView {
  readonly #options: SharedViewOptions;
  readonly #waiters = new Waiters<ProxyError | undefined>();
  readonly #life = new AbortController();
  readonly #log: RevisionLog;
  readonly #triggers = new TriggerLog();
  #node: NodeContext | undefined;
  #eligibility: Eligibility;
  #revision = 0;
  #nodeRevision = 0;
  #eligibilityRevision = 0;
  #isPulling = false;

  constructor(options: SharedViewOptions) {
    this.#options = options;
    this.#eligibility = options.eligibility;
    this.#log = new RevisionLog(FIRST, options.changesKept ?? CHANGES_KEPT);
  }

  /** The first state has come. */
  get hasState(): boolean {
    return this.#revision > 0;
  }

  /** Rows held. */
  get size(): number {
    return this.#options.rows.size;
  }

  /** {@inheritDoc StateView.next} Also what the feed refuses it with. */
  async next(cursor: Cursor, signal: AbortSignal): Promise<Delivery> {
    // What the feed has ready now belongs to this answer, not to the next.
    this.#pull();
    await new Promise((resolve) => setImmediate(resolve));
    for (;;) {
      if (signal.aborted || this.#life.signal.aborted) throw new ProxyError("canceled", "watching the node state was stopped");
      const isKnown = cursor.instance === this.#options.instance && cursor.revision <= this.#revision && this.#log.reaches(cursor.revision);
      if (this.#revision > 0 && !isKnown) return this.#everything();
      if (this.#revision > 0 && cursor.revision < this.#revision) return this.#since(cursor.revision);
      this.#pull();
      const refusal = await this.#news(signal);
      if (refusal !== undefined) throw refusal;
    }
  }

  /** The node's eligibility is this now. */
  setEligibility(eligibility: Eligibility): void {
    if (isEqual(eligibility, this.#eligibility)) return;
    this.#eligibility = eligibility;
    // Before the first state there is nothing it could be a change of.
    if (this.#revision === 0) return;
    this.#revision += 1;
    this.#eligibilityRevision = this.#revision;
    this.#wake();
  }

  /** {@inheritDoc StateView.close} */
  close(): void {
    this.#life.abort();
    this.#options.rows.close();
    this.#wake();
  }

  #pull(): void {
    if (this.#isPulling || this.#life.signal.aborted) return;
    this.#isPulling = true;
    void this.#pullOne();
  }

  async #pullOne(): Promise<void> {
    let refusal: ProxyError | undefined;
    try {
      const changes = await this.#options.feed.next(this.#life.signal);
      if (!this.#life.signal.aborted) this.#accept(changes);
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      // A feed ends with its view alone; if it does before, nobody may be left waiting for it.
      if (error.code === "canceled") this.#life.abort();
      else refusal = error;
    } finally {
      this.#isPulling = false;
      this.#wake(refusal);
    }
  }

  #accept(changes: ChangeSet): void {
    const revision = this.#revision + 1;
    const touched = changes.full ? this.#replace(changes.set) : this.#change(changes);
    const isNewNode = changes.node !== undefined && !isEqual(changes.node, this.#node);
    if (this.#revision > 0 && touched.length === 0 && !isNewNode) return;
    if (isNewNode) {
      this.#node = changes.node;
      this.#nodeRevision = revision;
    }
    // Of the first state nothing can be behind.
    if (this.#revision > 0) {
      const most = Math.ceil(this.size * CHANGES_PART);
      for (const key of touched) this.#log.add(revision, key, undefined, most);
      this.#triggers.add(revision, changes.triggersMs);
    }
    this.#revision = revision;
  }

  #replace(rows: readonly ServicePort[]): readonly string[] {
    const present = new Set(rows.map(({ key }) => key));
    const gone = [...this.#options.rows.values()].filter(({ key }) => !present.has(key));
    return this.#change({ set: rows, delete: gone.map(({ key }) => key) });
  }

  /** Keys of the rows that are others now, as rows that are held have them: the log keeps them. */
  #change(changes: Pick<ChangeSet, "set" | "delete">): readonly string[] {
    const { rows } = this.#options;
    const deleted = changes.delete.map((key) => rows.delete(key));
    const set = changes.set.map((row) => rows.set(row));
    return [...deleted, ...set].flatMap((row) => row?.key ?? []);
  }

  #everything(): Delivery {
    const { instance, family, rows } = this.#options;
    const node = this.#node === undefined ? {} : { node: this.#node };
    const changes = {
      instance,
      revision: this.#revision,
      family,
      full: true,
      ...node,
      set: [...rows.values()],
      delete: [],
      triggersMs: [],
    };
    return { changes, eligibility: this.#eligibility };
  }

  #since(revision: number): Delivery {
    const { instance, family, rows } = this.#options;
    const keys = [...this.#log.since(revision).keys()];
    const node = this.#node !== undefined && this.#nodeRevision > revision ? { node: this.#node } : {};
    return {
      changes: {
        instance,
        revision: this.#revision,
        family,
        full: false,
        ...node,
        set: keys.flatMap((key) => rows.get(key) ?? []),
        delete: keys.filter((key) => rows.get(key) === undefined),
        triggersMs: this.#triggers.since(revision),
      },
      eligibility: this.#eligibilityRevision > revision ? this.#eligibility : undefined,
    };
  }

  /** Resolves to what is refused, if it is. */
  async #news(signal: AbortSignal): Promise<ProxyError | undefined> {
    return await this.#waiters.wait(signal);
  }

  #wake(refusal?: ProxyError): void {
    this.#waiters.resolve(refusal);
  }
}
