import {
  objectId,
  ProxyError,
  type ChangeSet,
  type Feed,
  type IPFamily,
  type Issue,
  type KernelObject,
  type Log,
  type Observed,
} from "@turnout/core";
import type { FamilyStates } from "./family-states.ts";

/** What a guarded feed works with. */
export interface GuardedFeedOptions {
  readonly feed: Feed;
  readonly family: IPFamily;
  readonly states: FamilyStates;
  /** How many objects of ours the host holds for rows; asked before the first state is handed on. */
  readonly countOnHost: (first: ChangeSet, signal: AbortSignal) => Promise<number>;
  /** A state that isn't believed is an error, and not something to wait for the end of. */
  readonly failsAtOnce: boolean;
  readonly nowMs: () => number;
  readonly log: Log;
}

/**
 * A feed that doesn't believe in a whole state without any row, in no family, where rows are in force: that is a wrong file or API server
 * rather than a fixture. It says so, leaves rules alone, and hands on whatever has rows again.
 *
 * Edges: rows that go one by one are believed, also the last one. Between node-state servers and after restarts only whole states tell.
 */
export class GuardedFeed implements Feed {
  readonly #options: GuardedFeedOptions;
  #next: Promise<ChangeSet> | undefined;
  /** The state in doubt; kept when the host can't be looked at, to be asked about again. */
  #blank: ChangeSet | undefined;
  #isFirst = true;
  #refusedSinceMs: number | undefined;

  constructor(options: GuardedFeedOptions) {
    this.#options = options;
    options.states.join(options.family);
  }

  /** Since when there is a state that is not believed, ms since the epoch. */
  get refusedSinceMs(): number | undefined {
    return this.#refusedSinceMs;
  }

  /** @see Feed @throws {ProxyError} `not_found` for a state that isn't believed, where that is an error at once. */
  async next(signal: AbortSignal): Promise<ChangeSet> {
    const { family, states } = this.#options;
    // A state that is in doubt stays so when the feed was lost meanwhile: the rows in force are those of before.
    const hadRows = this.#blank !== undefined || states.hasRows(family);
    let changes = this.#blank ?? (await this.#pull(signal));
    while (isBlank(changes)) {
      this.#blank = changes;
      if (!(await this.#isDoubtful(changes, hadRows, signal))) break;
      const next = await Promise.race([this.#ask(signal), states.news()]);
      if (next !== undefined) changes = merged(changes, await this.#pull(signal));
    }
    this.#blank = undefined;
    this.#isFirst = false;
    this.#refusedSinceMs = undefined;
    return changes;
  }

  async #isDoubtful(changes: ChangeSet, hadRows: boolean, signal: AbortSignal): Promise<boolean> {
    const { countOnHost, failsAtOnce, family, log, nowMs, states } = this.#options;
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

  /** @see Feed */
  issues(): Iterable<Issue> {
    return this.#options.feed.issues?.() ?? [];
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
      this.#options.states.note(this.#options.family, changes);
      return changes;
    } finally {
      this.#next = undefined;
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
