import {
  lastingContext,
  NamespaceShares,
  objectId,
  ProxyError,
  ServiceBound,
  type Backend,
  type ChangeSet,
  type Feed,
  type IPFamily,
  type Issue,
  type KernelObject,
  type Log,
  type NodeContext,
  type Observed,
  type ServiceBoundOptions,
} from "@turnout/core";
import type { FamilyStates } from "./family-states.ts";

/** What a state without any Service is checked with. */
export interface FeedGuard {
  readonly states: FamilyStates;
  /** How many objects of ours the host holds for rows; asked before the first state is handed on. */
  readonly countOnHost: (first: ChangeSet, signal: AbortSignal) => Promise<number>;
  /** A state that isn't trusted is an error, and not something to wait for the end of. */
  readonly failsAtOnce: boolean;
  readonly nowMs: () => number;
}

/** What a node's feed works with. */
export interface NodeFeedOptions {
  readonly feed: Feed;
  readonly family: IPFamily;
  readonly log: Log;
  readonly bound: ServiceBoundOptions;
  /** Absent: nothing of what it has is shared. */
  readonly backend?: Pick<Backend<never, never, never>, "capacities">;
  /** Undefined: a state without any Service is trusted. */
  readonly guard?: FeedGuard | undefined;
}

/**
 * The last step of the chain of feeds, before the sync loop: what one family's process makes of each change set.
 *
 * 1. A whole state without any row, in no family, is not trusted where rows are in force: that is a wrong file or API server rather than a fixture.
 *    It is logged, rules stay, and whatever has rows again is handed on ({@link FeedGuard}).
 * 2. Endpoints of Services that have too many are left out ({@link ServiceBound}).
 * 3. Ports of namespaces that want more than their share of what the backend has are held back ({@link NamespaceShares}).
 * 4. It is noted whether the node has other addresses, and whether health check node ports changed. In any case Services are followed.
 *
 * Edges: rows that go one by one are trusted, also the last one. Between node-state servers and after restarts only whole states count.
 */
export class NodeFeed implements Feed {
  readonly #options: NodeFeedOptions;
  readonly #bound: ServiceBound;
  readonly #shares: NamespaceShares;
  readonly #healthRows = new Set<string>();
  #node: NodeContext | undefined;
  #isHealthTouched = false;
  #next: Promise<ChangeSet> | undefined;
  /** The state in doubt; kept when the host can't be looked at, to be asked about again. */
  #blank: ChangeSet | undefined;
  #isFirst = true;
  #refusedSinceMs: number | undefined;

  constructor(options: NodeFeedOptions) {
    this.#options = options;
    this.#bound = new ServiceBound(options.bound);
    this.#shares = new NamespaceShares({ capacities: () => options.backend?.capacities?.() ?? [], report: options.bound.report });
    options.guard?.states.join(options.family);
  }

  /** Since when there is a state that is not trusted, ms since the epoch. */
  get refusedSinceMs(): number | undefined {
    return this.#refusedSinceMs;
  }

  /** Tell, once, whether health check node ports may have changed since the last call. */
  consumeHealthTouched(): boolean {
    const isTouched = this.#isHealthTouched;
    this.#isHealthTouched = false;
    return isTouched;
  }

  /** @see Feed @throws {ProxyError} `not_found` for a state that isn't trusted, where that is an error at once. */
  async next(signal: AbortSignal): Promise<ChangeSet> {
    const changes = this.#shares.limit(this.#bound.limit(await this.#trusted(signal)));
    this.#noteHealth(changes);
    return changes.node === undefined ? changes : { ...changes, node: this.#noteNode(changes.node, changes.full) };
  }

  /** @see Feed */
  issues(): Iterable<Issue> {
    return [...(this.#options.feed.issues?.() ?? []), ...this.#bound.issues(), ...this.#shares.issues()];
  }

  async #trusted(signal: AbortSignal): Promise<ChangeSet> {
    const { family, guard } = this.#options;
    // A state that is in doubt stays so when the feed was lost meanwhile: the rows in force are those of before.
    const hadRows = this.#blank !== undefined || guard?.states.hasRows(family) === true;
    let changes = this.#blank ?? (await this.#pull(signal));
    while (isBlank(changes)) {
      this.#blank = changes;
      if (!(await this.#isDoubtful(changes, hadRows, signal))) break;
      const next = await Promise.race([this.#ask(signal), guard?.states.news()]);
      if (next !== undefined) changes = merged(changes, await this.#pull(signal));
    }
    this.#blank = undefined;
    this.#isFirst = false;
    this.#refusedSinceMs = undefined;
    return changes;
  }

  async #isDoubtful(changes: ChangeSet, hadRows: boolean, signal: AbortSignal): Promise<boolean> {
    const { family, log, guard } = this.#options;
    if (guard === undefined) return false;
    const { countOnHost, failsAtOnce, nowMs, states } = guard;
    // Nothing of this family can go, or the other one has rows: one family alone is often without.
    if (!this.#isFirst && !hadRows) return false;
    const areOthersEmpty = states.areOthersEmpty(family);
    if (areOthersEmpty === false) return false;
    if (areOthersEmpty === undefined || this.#refusedSinceMs !== undefined) return true;
    if (this.#isFirst && (await countOnHost(changes, signal)) === 0) return false;
    const error = new ProxyError("not_found", "the source has no Service, but rules of Services are in force here", {
      object: `${family} of node ${changes.node?.name ?? "unknown"}`,
      hint: "the rules stay; check --source, or pass --allow-empty if there should be no Service",
    });
    if (failsAtOnce) throw error;
    this.#refusedSinceMs = nowMs();
    log.error(error.message, { family });
    return true;
  }

  /** Have the next change set under way, without taking it. */
  #ask(signal: AbortSignal): Promise<ChangeSet> {
    if (this.#next === undefined) {
      const next = this.#options.feed.next(signal);
      this.#next = next;
      // Looked at by the next call; should it fail before, that must not count as unhandled, and the feed is asked anew.
      next.catch(() => {
        if (this.#next === next) this.#next = undefined;
      });
    }
    return this.#next;
  }

  async #pull(signal: AbortSignal): Promise<ChangeSet> {
    try {
      const changes = await this.#ask(signal);
      this.#options.guard?.states.note(this.#options.family, changes);
      return changes;
    } finally {
      this.#next = undefined;
    }
  }

  #noteNode(reported: NodeContext, isFull: boolean): NodeContext {
    const before = this.#node;
    // A node-state server that only tells what changed knows the node: it has no address of this family any more.
    const node = isFull ? lastingContext(before, reported) : reported;
    this.#node = node;
    if (before === undefined || before.addresses[0] === node.addresses[0]) return node;
    // They are answered on the node's primary address.
    this.#isHealthTouched = true;
    const { name, family } = node;
    const say = (addresses: readonly string[]): string => addresses.join(" ") || "unknown";
    this.#options.log.info("this node has another address", {
      node: name,
      family,
      before: say(before.addresses),
      now: say(node.addresses),
    });
    return node;
  }

  #noteHealth(changes: ChangeSet): void {
    if (changes.full && this.#healthRows.size > 0) {
      this.#healthRows.clear();
      this.#isHealthTouched = true;
    }
    for (const key of changes.delete) if (this.#healthRows.delete(key)) this.#isHealthTouched = true;
    for (const row of changes.set) {
      const had = this.#healthRows.delete(row.key);
      if (row.healthCheck !== undefined) this.#healthRows.add(row.key);
      if (had || row.healthCheck !== undefined) this.#isHealthTouched = true;
    }
  }
}

/** Count what a host holds beyond the skeleton, and is not about to go. */
export function countForRows<K extends KernelObject>(observed: Observed<K> | undefined, skeleton: readonly K[]): number {
  const others = new Set([...skeleton, ...(observed?.lingering ?? [])].map(objectId));
  return [...(observed?.objects.keys() ?? [])].filter((id) => !others.has(id)).length;
}

function isBlank({ full, set }: ChangeSet): boolean {
  return full && set.length === 0;
}

/** Put a change set behind a whole state without rows. */
function merged(blank: ChangeSet, next: ChangeSet): ChangeSet {
  if (next.full) return next;
  const node = next.node ?? blank.node;
  return { ...next, full: true, delete: [], ...(node === undefined ? {} : { node }) };
}
