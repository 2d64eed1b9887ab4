/** One key that changed. */
interface Entry {
  readonly revision: number;
  readonly key: string;
}

/** Times of triggers of one revision. */
interface Triggers {
  readonly revision: number;
  readonly timesMs: readonly number[];
}

const ENTRIES_MIN = 4_096;
const TRIGGERS_MAX = 1_000;

/**
 * Which rows changed since which revision, as far back as it reaches.
 *
 * Edges: a key that changes again moves to its newest revision, so the log holds at most about twice as many keys as there
 * are rows; past that the oldest half is forgotten, and who is behind it needs everything.
 */
export class ViewLog {
  #floor: number;
  readonly #entriesMin: number;
  #entries: Entry[] = [];
  readonly #latest = new Map<string, number>();
  #triggers: Triggers[] = [];

  /** `floor` is the oldest revision that differences can be told to; at least `entriesMin` changes are remembered. */
  constructor(floor: number, entriesMin: number = ENTRIES_MIN) {
    this.#floor = floor;
    this.#entriesMin = entriesMin;
  }

  /** Changes remembered. */
  get size(): number {
    return this.#entries.length;
  }

  /** Tell whether {@link ViewLog.since} knows everything that happened since. */
  reaches(revision: number): boolean {
    return revision >= this.#floor;
  }

  /** Note what changed; revisions only grow. `rows` is how many there are now. */
  add(revision: number, keys: Iterable<string>, triggersMs: readonly number[], rows: number): void {
    for (const key of keys) {
      this.#entries.push({ revision, key });
      this.#latest.set(key, revision);
    }
    if (triggersMs.length > 0) this.#triggers.push({ revision, timesMs: triggersMs });
    if (this.#triggers.length > TRIGGERS_MAX) this.#triggers = this.#triggers.slice(-TRIGGERS_MAX / 2);
    const most = Math.max(this.#entriesMin, rows);
    if (this.#entries.length > 2 * most) this.#compact(most);
  }

  /** The keys that changed after `revision`. */
  since(revision: number): ReadonlySet<string> {
    const keys = new Set<string>();
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at];
      if (entry === undefined || entry.revision <= revision) break;
      keys.add(entry.key);
    }
    return keys;
  }

  /** When the changes after `revision` were triggered. */
  triggersSince(revision: number): readonly number[] {
    return this.#triggers.filter((one) => one.revision > revision).flatMap(({ timesMs }) => timesMs);
  }

  #compact(most: number): void {
    this.#entries = this.#entries.filter(({ revision, key }) => this.#latest.get(key) === revision);
    if (this.#entries.length <= most) return;
    this.#floor = this.#entries[Math.floor(this.#entries.length / 2)]?.revision ?? this.#floor;
    for (const { revision, key } of this.#entries) if (revision <= this.#floor) this.#latest.delete(key);
    this.#entries = this.#entries.filter(({ revision }) => revision > this.#floor);
  }
}
