/** One change of one key. */
interface Entry<N> {
  readonly revision: number;
  readonly key: string;
  note: N;
}

/** What becomes of the notes of one key's changes. */
export interface RevisionNotes<N> {
  /** Put the notes of an earlier change and of the later ones together, for an answer. */
  join(earlier: N, later: N): N;
  /** The same for good: from then on the log knows only that the key changed at the later revision. */
  fold(earlier: N, later: N): N;
}

const ENTRIES_MIN = 4_096;

/**
 * Which keys changed since which revision, as far back as it reaches, each with a note.
 *
 * Shape: without {@link RevisionNotes} the note of a key's latest change stands for all of them.
 * Edges: a key that changes again moves to its newest revision when the log gets long, so it holds at most about twice as many changes as there
 * are keys; past that the oldest half is forgotten, and who is behind it needs everything.
 */
export class RevisionLog<N = undefined> {
  readonly #notes: RevisionNotes<N> | undefined;
  readonly #entriesMin: number;
  #floor: number;
  #entries: Entry<N>[] = [];

  /** `floor` is the oldest revision that differences can be told to; at least `entriesMin` changes are remembered, default 4,096. */
  constructor(floor: number, entriesMin: number = ENTRIES_MIN, notes?: RevisionNotes<N>) {
    this.#floor = floor;
    this.#entriesMin = entriesMin;
    this.#notes = notes;
  }

  /** Changes remembered. */
  get size(): number {
    return this.#entries.length;
  }

  /** Tell whether {@link RevisionLog.since} knows everything that happened since. */
  reaches(revision: number): boolean {
    return revision >= this.#floor;
  }

  /** Note a change; revisions never get smaller. `keys` is how many there are now. */
  add(revision: number, key: string, note: N, keys: number): void {
    this.#entries.push({ revision, key, note });
    const most = Math.max(this.#entriesMin, keys);
    if (this.#entries.length > 2 * most) this.#compact(most);
  }

  /** What changed after `revision`, newest first, with the notes of its changes since then. */
  since(revision: number): ReadonlyMap<string, N> {
    const found = new Map<string, N>();
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at];
      if (entry === undefined || entry.revision <= revision) break;
      if (!found.has(entry.key)) found.set(entry.key, entry.note);
      else if (this.#notes !== undefined) found.set(entry.key, this.#notes.join(entry.note, found.get(entry.key) as N));
    }
    return found;
  }

  #compact(most: number): void {
    const newest = new Map<string, Entry<N>>();
    for (const entry of this.#entries.toReversed()) {
      const later = newest.get(entry.key);
      if (later === undefined) newest.set(entry.key, entry);
      else if (this.#notes !== undefined) later.note = this.#notes.fold(entry.note, later.note);
    }
    this.#entries = [...newest.values()].toReversed();
    if (this.#entries.length <= most) return;
    this.#floor = this.#entries[Math.floor(this.#entries.length / 2)]?.revision ?? this.#floor;
    this.#entries = this.#entries.filter(({ revision }) => revision > this.#floor);
  }
}
