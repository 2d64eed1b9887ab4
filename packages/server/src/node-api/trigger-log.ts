/** When the changes of one revision were triggered. */
interface Triggers {
  readonly revision: number;
  readonly timesMs: readonly number[];
}

/** Revisions that are remembered; the times are samples of latency, and those of the oldest half may go. */
const REVISIONS_MAX = 1_000;

/** When the changes since a revision were triggered, ms since the epoch. Bounded. */
export class TriggerLog {
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
