import type { ProxyError } from "../model/errors.ts";
import type { ChangeSet } from "../model/rows.ts";

/** Triggers that are remembered at most; they are a sample for a histogram of latencies, and while syncs fail they pile up. */
const TRIGGERS_MAX = 10_000;

/** Change sets that are told apart at most; while syncs fail they pile up, and later ones count as one. */
const CHANGE_SETS_MAX = 100;

/** A change set that is not in force as a whole. */
interface Open {
  readonly atMs: number;
  readonly triggersMs: number[];
  /** Rows of it that were still waiting when they were last looked at. */
  readonly keys: Set<string>;
}

/** What is in force as a whole by now, in ms since the epoch. */
export interface Settled {
  /** When the endpoint changes in it were triggered. */
  readonly triggersMs: readonly number[];
  /** When each of its change sets came. */
  readonly queuedMs: readonly number[];
  /** When the oldest of the others came; undefined: there is none. */
  readonly waitingSinceMs: number | undefined;
}

/** How far a sync loop has come: what health and metrics tell. Times in ms since the epoch. */
export class Progress {
  #open: Open[] = [];
  #triggerCount = 0;
  #lastSuccessMs: number | undefined;
  #pendingSinceMs: number | undefined;
  #lastError: ProxyError | undefined;

  /** When everything that was wanted was last in force, but for what the host refuses. */
  get lastSuccessMs(): number | undefined {
    return this.#lastSuccessMs;
  }

  /** Since when a change has been waiting, and nothing of what waits was brought into force; undefined: none is. */
  get pendingSinceMs(): number | undefined {
    return this.#pendingSinceMs;
  }

  /** What the last sync failed with. */
  get lastError(): ProxyError | undefined {
    return this.#lastError;
  }

  /** A change set came; of the times at which its endpoint changes were triggered the earliest are remembered. `before`: the rows until then, of which a whole state takes all. */
  queued(
    atMs: number,
    { full, set, delete: gone, triggersMs }: Pick<ChangeSet, "full" | "set" | "delete" | "triggersMs">,
    before: Iterable<string> = [],
  ): void {
    this.#pendingSinceMs ??= atMs;
    const last = this.#open.length < CHANGE_SETS_MAX ? undefined : this.#open.at(-1);
    const one = last ?? { atMs, triggersMs: [], keys: new Set<string>() };
    if (last === undefined) this.#open.push(one);
    for (const key of full ? before : gone) one.keys.add(key);
    for (const { key } of set) one.keys.add(key);
    for (const triggerMs of triggersMs.slice(0, TRIGGERS_MAX - this.#triggerCount)) {
      one.triggersMs.push(triggerMs);
      this.#triggerCount++;
    }
  }

  /** A sync failed. Also when nothing changed: what the host lost and can't be given back is waiting too. */
  failed(startMs: number, error: ProxyError): void {
    this.#lastError = error;
    this.#pendingSinceMs ??= startMs;
  }

  /** A sync did what it could; `waiting`: rows that wait for the next one, which do so from now on; undefined: everything is in force. */
  synced(atMs: number, waiting: readonly string[] | undefined): Settled {
    this.#lastError = undefined;
    this.#pendingSinceMs = waiting === undefined ? undefined : atMs;
    if (waiting === undefined) this.#lastSuccessMs = atMs;
    const still = waiting === undefined ? undefined : new Set(waiting);
    const settled = this.#open.filter((one) => still === undefined || isSettled(one, still));
    this.#open = this.#open.filter((one) => !settled.includes(one));
    const triggersMs = settled.flatMap((one) => one.triggersMs);
    this.#triggerCount -= triggersMs.length;
    return { triggersMs, queuedMs: settled.map((one) => one.atMs), waitingSinceMs: this.#open[0]?.atMs };
  }
}

/** Whether none of a change set's rows waits any more. */
function isSettled({ keys }: Open, waiting: ReadonlySet<string>): boolean {
  for (const key of keys) {
    if (waiting.has(key)) return false;
    keys.delete(key);
  }
  return true;
}
