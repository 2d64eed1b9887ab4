import type { ServicePort } from "./rows.ts";

/** One port of a Service, as far as its size goes. */
export interface PortSize {
  /** Addresses on which it answers, its node port among them. */
  readonly places: number;
  readonly endpoints: number;
}

/** How an endpoint is chosen: the lower rank first, and within a rank by a hash of its address. */
interface Choice {
  readonly rank: number;
  readonly ip: string;
}

/**
 * Say how many endpoints each port of a Service may use, so that endpoints times addresses are at most `entriesMax` over all ports.
 *
 * Edges: at least 1; infinite where all fit.
 * @source rule R-67
 */
export function endpointsPerPort(ports: readonly PortSize[], entriesMax: number): number {
  const entriesWith = (most: number): number => ports.reduce((sum, { places, endpoints }) => sum + places * Math.min(endpoints, most), 0);
  if (entriesWith(Infinity) <= entriesMax) return Infinity;
  let [fits, tooMany] = [1, entriesMax + 1];
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if (entriesWith(middle) <= entriesMax) fits = middle;
    else tooMany = middle;
  }
  return fits;
}

/** Chooses endpoints on behalf of a node, for any number of ports: each address is hashed once. */
export class EndpointChoice {
  readonly #nodeName: string;
  readonly #hashes = new Map<string, number>();

  /** With another name other endpoints are chosen. */
  constructor(nodeName: string) {
    this.#nodeName = nodeName;
  }

  /**
   * Choose `most` of `count` items; returns their indexes in ascending order.
   *
   * Shape: an item that comes or goes changes at most one other one.
   */
  firstOf(count: number, most: number, choiceOf: (index: number) => Choice): readonly number[] {
    const items = Array.from({ length: count }, (_, index) => {
      const { rank, ip } = choiceOf(index);
      return { index, rank, hash: this.#hashOf(ip) };
    });
    const sorted = items.sort((a, b) => a.rank - b.rank || a.hash - b.hash || a.index - b.index);
    return sorted
      .slice(0, most)
      .map(({ index }) => index)
      .sort((a, b) => a - b);
  }

  /**
   * Leave a row `most` of its endpoints: those of its pools that are on this node, then others of its pools (where topology hints apply, these are
   * the node's zone), then those that are not used. Within each group by a hash with the node's name, so that nodes choose different ones.
   *
   * Edges: the row itself where it has no more. A pool that has endpoints keeps one at least, because rules name it.
   * @source rule R-67
   */
  firstOfRow(row: ServicePort, most: number): ServicePort {
    const { endpoints, cluster, local } = row;
    if (endpoints.length <= most) return row;
    const used = new Set([...cluster, ...local]);
    const choiceOf = (index: number): Choice => {
      const { ip = "", isLocal = false } = endpoints[index] ?? {};
      return { rank: used.has(index) ? (isLocal ? 0 : 1) : 2, ip };
    };
    const kept = new Set(this.firstOf(endpoints.length, most, choiceOf));
    for (const pool of [cluster, local]) {
      if (pool.some((index) => kept.has(index))) continue;
      for (const at of this.firstOf(pool.length, 1, (place) => choiceOf(pool[place] ?? 0))) kept.add(pool[at] ?? 0);
    }
    const all = [...kept].sort((a, b) => a - b);
    const placeOf = new Map(all.map((index, place) => [index, place]));
    const keptOf = (pool: readonly number[]): readonly number[] => pool.flatMap((index) => placeOf.get(index) ?? []);
    return { ...row, endpoints: all.flatMap((index) => endpoints[index] ?? []), cluster: keptOf(cluster), local: keptOf(local) };
  }

  #hashOf(ip: string): number {
    let hash = this.#hashes.get(ip);
    if (hash === undefined) this.#hashes.set(ip, (hash = hashOf(`${this.#nodeName} ${ip}`)));
    return hash;
  }
}

/** FNV-1a, with the finish of MurmurHash3: addresses differ in their last characters only. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
