import { parseCIDR } from "./addresses.ts";
import type { IP } from "./addresses.ts";

/** One range, and what is known of it. */
export interface IndexedRange<T> {
  /** Canonical CIDR. */
  readonly range: string;
  readonly of: T;
}

/** Finds the range of one family that contains an address. A look costs as many steps as there are prefix lengths, however many ranges there are. */
export class RangeIndex<T> {
  /** By how many bits an address is shifted, then by what is left of it. */
  readonly #byShift = new Map<bigint, Map<bigint, IndexedRange<T>>>();

  constructor(ranges: Iterable<IndexedRange<T>>) {
    for (const one of ranges) {
      const cidr = parseCIDR(one.range);
      if (cidr === undefined) continue;
      const shift = BigInt((cidr.family === "IPv4" ? 32 : 128) - cidr.prefixLength);
      const known = this.#byShift.get(shift) ?? new Map<bigint, IndexedRange<T>>();
      if (!known.has(cidr.value >> shift)) known.set(cidr.value >> shift, one);
      this.#byShift.set(shift, known);
    }
  }

  /** The range around an address of the same family; of several one. */
  find(ip: IP): IndexedRange<T> | undefined {
    for (const [shift, known] of this.#byShift) {
      const found = known.get(ip.value >> shift);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
