import { Waiters, type ChangeSet, type IPFamily } from "@turnout/core";

/** What a family said so far. */
interface Said {
  readonly hasRows: boolean;
  /** How many whole states it told; a difference is as new as the newest whole state of any family. */
  readonly round: number;
}

const NOTHING: Said = { hasRows: false, round: 0 };

/** What the families of one process said last: one of them may well have no rows, all of them together hardly ever. */
export class FamilyStates {
  readonly #said = new Map<IPFamily, Said>();
  readonly #news = new Waiters();

  /** Count a family in; before any of them speaks. */
  join(family: IPFamily): void {
    this.#said.set(family, NOTHING);
  }

  /** Resolves when a family says something. */
  async news(): Promise<void> {
    await this.#news.wait();
  }

  /** A family has rows, as far as it said. */
  hasRows(family: IPFamily): boolean {
    return this.#said.get(family)?.hasRows === true;
  }

  /** A family said something. */
  note(family: IPFamily, { full, set }: ChangeSet): void {
    const { hasRows, round } = this.#said.get(family) ?? NOTHING;
    this.#said.set(family, {
      hasRows: set.length > 0 || (!full && hasRows),
      round: full ? round + 1 : Math.max(...[...this.#said.values()].map((said) => said.round)),
    });
    this.#news.resolve();
  }

  /**
   * Whether the other families have no rows either, now that this one told a whole state without any; undefined: some have not told since.
   * What a family said before another node-state server came counts for nothing.
   */
  areOthersEmpty(family: IPFamily): boolean | undefined {
    const { round } = this.#said.get(family) ?? NOTHING;
    const others = [...this.#said].filter(([other]) => other !== family).map(([, said]) => said);
    if (others.some((said) => said.round >= round && said.hasRows)) return false;
    return others.every((said) => said.round >= round) ? true : undefined;
  }
}
