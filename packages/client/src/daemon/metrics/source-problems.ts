import type { ClockReading } from "@turnout/core";

/** What keeps parts of the source from being followed, and since when. */
export class SourceProblems {
  readonly #clock: ClockReading;
  readonly #problems = new Map<string, string>();
  /** Only of those that are not followed; by the clock's `nowMs`. */
  readonly #sinceMs = new Map<string, number>();

  constructor(clock: ClockReading) {
    this.#clock = clock;
  }

  /** By part, e.g. `Service`; "" for those that are followed. */
  get all(): ReadonlyMap<string, string> {
    return this.#problems;
  }

  /** Note the problem of a part; "" when it is followed. */
  note(part: string, problem: string): void {
    this.#problems.set(part, problem);
    if (problem === "") this.#sinceMs.delete(part);
    else if (!this.#sinceMs.has(part)) this.#sinceMs.set(part, this.#clock.nowMs());
  }

  /** How many parts could not be followed for longer than this. */
  lostFor(ms: number): number {
    const nowMs = this.#clock.nowMs();
    return [...this.#sinceMs.values()].filter((sinceMs) => nowMs - sinceMs > ms).length;
  }
}
