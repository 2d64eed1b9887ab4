/** How much of the time that a backend may take what is planned for a turn should take: others wait so long, and hardly anything is deferred. */
const PLANNED_SHARE = 0.1;
/** Entries of a turn for each ms that it should take, before anything is known of the host. */
const FIRST_ENTRIES_PER_MS = 2;
/** How much less each turn counts than the one after it. */
const FADING = 0.9;
/** Where a turn that does nothing would take as long as one should, as with a tool that reads the whole table, turns take so many times as long as that. */
const IDLE_TIMES = 2;
/** Rows that change little allow for so many entries in a turn for each ms that it should take, and no more: the next rows may change as a whole. */
const LITTLE_ENTRIES_PER_MS = 64;
/** Turns of at most so many objects take their time whatever they do, as long as nothing else is known: they can hardly be smaller. */
const FEW_OBJECTS = 20;

/** How much work one turn takes on, from what the last turns took: so many ms for each object, and some whatever it does. Pure. */
export class TurnBudget {
  readonly #aimMs: number;
  #entries: number;
  /** Faded sums over the last turns, of which a straight line is made: how many, their objects, ms, objects squared, objects times ms. */
  #sums: readonly number[] = [0, 0, 0, 0, 0];
  /** As far as is known from turns of different sizes. */
  #perObjectMs: number | undefined;

  /** `turnMs`: how long a backend may take; 0: each turn does as little as can be. */
  constructor(turnMs: number) {
    this.#aimMs = turnMs * PLANNED_SHARE;
    this.#entries = 1 + this.#aimMs * FIRST_ENTRIES_PER_MS;
  }

  /** How many entries the next turn may have. */
  get entries(): number {
    return this.#entries;
  }

  /** A turn of so many entries, which made or removed so many objects, took so long, in ms. */
  took(entries: number, objects: number, ms: number): void {
    // What a turn without entries did, such as a repair, was not limited by them.
    if (entries === 0 || objects === 0 || this.#aimMs === 0) return;
    const now = [1, objects, ms, objects ** 2, objects * ms];
    this.#sums = this.#sums.map((sum, at) => sum * FADING + (now[at] ?? 0));
    const aimMs = Math.max(this.#aimMs, Math.min(ms, this.#idleMs()) * IDLE_TIMES);
    if (ms > aimMs) this.#entries = Math.max(1, Math.min(this.#entries, Math.floor((entries * aimMs) / ms)));
    // A turn that had less to do than it could says nothing of larger ones, and nor do rows that changed nothing: the next ones may.
    else if (entries * 2 > this.#entries) {
      const fits = (count: number): number => Math.floor((count * aimMs) / ms);
      const fitting = Math.max(fits(Math.min(entries, objects)), Math.min(fits(entries), this.#aimMs * LITTLE_ENTRIES_PER_MS));
      this.#entries = Math.max(this.#entries, Math.min(this.#entries * 2, fitting));
    }
  }

  /** What a turn takes that does nothing: where the line through the last turns begins. */
  #idleMs(): number {
    const [count = 0, objects = 0, ms = 0, squares = 0, products = 0] = this.#sums;
    const spread = count * squares - objects ** 2;
    if (spread >= 1e-6 * squares) this.#perObjectMs = Math.max(0, (count * products - objects * ms) / spread);
    if (this.#perObjectMs === undefined) return objects <= count * FEW_OBJECTS ? ms / count : 0;
    return Math.max(0, (ms - this.#perObjectMs * objects) / count);
  }
}
