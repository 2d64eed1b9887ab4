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
import type { Cursor, StateView } from "./state-view.ts";
import { TriggerLog } from "./trigger-log.ts";

/** What a shared view is made of. */
export interface SharedViewOptions {
  /** Pulled only while a watcher waits. */
  readonly feed: Feed;
  readonly family: IPFamily;
  /** Identity of this history; never used again for another. */
  readonly instance: string;
  readonly eligibility: Eligibility;
  /** Changes that are remembered at least; default 4,096. */
  readonly changesKept?: number | undefined;
}

/** The first state's revision. */
const FIRST = 1;

/**
 * One node's state in one family as a feed tells it, for however many watchers: what a relay has of the node-state server behind it.
 *
 * Shape: revisions count what was pulled from the feed; a watcher is a {@link Cursor} it brings along, and costs nothing
 * here while it does not ask. What happens while none asks is merged by the feed; while some ask, by the log. A feed that
 * rejects refuses those who ask at that moment; whoever asks next has it asked again.
 */
export class SharedView implements StateView {
  readonly #options: SharedViewOptions;
  readonly #rows = new Map<string, ServicePort>();
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
    this.#log = new RevisionLog(FIRST, options.changesKept);
  }

  /** The first state has come. */
  get hasState(): boolean {
    return this.#revision > 0;
  }

  /** Rows held. */
  get size(): number {
    return this.#rows.size;
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
      this.#accept(await this.#options.feed.next(this.#life.signal));
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
      for (const key of touched) this.#log.add(revision, key, undefined, this.#rows.size);
      this.#triggers.add(revision, changes.triggersMs);
    }
    this.#revision = revision;
  }

  #replace(rows: readonly ServicePort[]): readonly string[] {
    const present = new Set(rows.map(({ key }) => key));
    return this.#change({ set: rows, delete: [...this.#rows.keys()].filter((key) => !present.has(key)) });
  }

  #change(changes: Pick<ChangeSet, "set" | "delete">): readonly string[] {
    const touched = changes.delete.filter((key) => this.#rows.delete(key));
    for (const row of changes.set) {
      if (isEqual(this.#rows.get(row.key), row)) continue;
      this.#rows.set(row.key, row);
      touched.push(row.key);
    }
    return touched;
  }

  #everything(): Delivery {
    const { instance, family } = this.#options;
    const node = this.#node === undefined ? {} : { node: this.#node };
    const changes = {
      instance,
      revision: this.#revision,
      family,
      full: true,
      ...node,
      set: [...this.#rows.values()],
      delete: [],
      triggersMs: [],
    };
    return { changes, eligibility: this.#eligibility };
  }

  #since(revision: number): Delivery {
    const { instance, family } = this.#options;
    const keys = [...this.#log.since(revision).keys()];
    const node = this.#node !== undefined && this.#nodeRevision > revision ? { node: this.#node } : {};
    return {
      changes: {
        instance,
        revision: this.#revision,
        family,
        full: false,
        ...node,
        set: keys.flatMap((key) => this.#rows.get(key) ?? []),
        delete: keys.filter((key) => !this.#rows.has(key)),
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
