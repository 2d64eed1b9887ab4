import type { LeftObjects } from "@turnout/core";

/** Who is suspected of having changed what is ours, and how much of it. */
export class SuspectedChange {
  /** Who did what first, for people. */
  readonly what: string;
  #left: LeftObjects[] | undefined = [];

  constructor(what: string) {
    this.what = what;
  }

  /** What was done, one thing after another; undefined: it may be anything. */
  get left(): readonly LeftObjects[] | undefined {
    return this.#left;
  }

  /** Somebody left so much of our objects; undefined: nobody knows. */
  add(left: LeftObjects | undefined): void {
    if (left === undefined) this.#left = undefined;
    else if (left === "nothing" || "covers" in left || left.size > 0) this.#left?.push(left);
  }
}
