import type { ServicePort } from "../model/rows.ts";

type Rows = readonly ServicePort[];

/**
 * Rows kept for a while: who asks at about the same time gets the same ones.
 *
 * Shape: two generations; when the younger weighs too much the older is let go. Weights are in any one unit.
 */
export class RecentRows {
  readonly #weightMax: number;
  #young = new Map<string, Rows>();
  #old: ReadonlyMap<string, Rows> = new Map();
  #weight = 0;

  constructor(weightMax: number) {
    this.#weightMax = weightMax;
  }

  /** Get the rows under a key, or make them. */
  get(key: string, weight: number, make: () => Rows): Rows {
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const rows = this.#old.get(key) ?? make();
    if (this.#weight + weight > this.#weightMax) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#weight = 0;
    }
    this.#young.set(key, rows);
    this.#weight += weight;
    return rows;
  }
}
