/** Addresses that are remembered: a name may stand for some of them at a time. */
const ADDRESSES_MAX = 64;

/** The latest addresses of the servers that API objects come from, each `address port`. */
export class SourceAddresses {
  readonly #known = new Set<string>();

  [Symbol.iterator](): Iterator<string> {
    return this.#known[Symbol.iterator]();
  }

  /** Take addresses that a server has now; returns whether one is new. */
  note(addresses: readonly string[]): boolean {
    if (addresses.every((one) => this.#known.has(one))) return false;
    for (const one of addresses) {
      this.#known.delete(one);
      this.#known.add(one);
    }
    for (const one of [...this.#known].slice(0, -ADDRESSES_MAX)) this.#known.delete(one);
    return true;
  }
}
