/**
 * Objects that must stay on the host although nothing wants them: those of rows that wait for the host to take their new form.
 *
 * Shape: by row the identities that may be its own. A row of which that isn't known, because it was in force before this process began, keeps
 * everything that the host held at first and that no row accounts for.
 */
export class KeptObjects {
  /** How many rows keep each. */
  readonly #counts = new Map<string, number>();
  readonly #rows = new Map<string, readonly string[]>();
  readonly #unknown = new Set<string>();
  #inherited = new Set<string>();
  #isAccounted = false;

  /** Keep these for a row; undefined: what is its own isn't known. */
  keep(row: string, ids: readonly string[] | undefined): void {
    this.drop(row);
    if (ids === undefined) {
      this.#unknown.add(row);
      return;
    }
    this.#rows.set(row, ids);
    for (const id of ids) this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
  }

  /** Keep nothing for a row any more. */
  drop(row: string): void {
    this.#unknown.delete(row);
    for (const id of this.#rows.get(row) ?? []) {
      const count = (this.#counts.get(id) ?? 0) - 1;
      if (count > 0) this.#counts.set(id, count);
      else this.#counts.delete(id);
    }
    this.#rows.delete(row);
  }

  /** Keep nothing for any row. */
  clear(): void {
    this.#unknown.clear();
    this.#rows.clear();
    this.#counts.clear();
  }

  /** Whether an object must stay. */
  has(id: string): boolean {
    return this.#counts.has(id) || (this.#unknown.size > 0 && this.#inherited.has(id));
  }

  /** Hear what the host holds. Until {@link KeptObjects.account} was called once, that was there before us or is half of what we tried. */
  found(ids: Iterable<string>): void {
    if (!this.#isAccounted) this.#inherited = new Set(ids);
  }

  /** Hear that everything is in force but for the rows kept: what is wanted is accounted for, and with no such row the rest is nobody's. */
  account(isWanted: (id: string) => boolean): void {
    this.#isAccounted = true;
    if (this.#unknown.size === 0) this.#inherited.clear();
    else for (const id of this.#inherited) if (isWanted(id)) this.#inherited.delete(id);
  }
}
