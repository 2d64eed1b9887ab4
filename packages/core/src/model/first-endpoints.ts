import { isEqual } from "./equal.ts";
import type { ServicePort } from "./rows.ts";

/** One port of a Service, as far as its size goes. */
export interface PortSize {
  /** Addresses on which it answers, its node port among them. */
  readonly places: number;
  readonly endpoints: number;
}

/**
 * Endpoints times addresses of one Service that are used at most, whatever a backend takes: this keeps memory and time from what the products of a
 * tenant's lists come to, each time one of them changes.
 */
export const ENTRIES_MADE_MAX = 500_000;

/** A row's endpoints that were chosen: their indexes, and pools of indexes among them. */
interface ChosenOfRow {
  readonly row: ServicePort;
  readonly most: number;
  readonly all: readonly number[];
  readonly cluster: readonly number[];
  readonly local: readonly number[];
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

/** Chooses endpoints on behalf of a node, for any number of ports: each address is hashed once, and ports with the same addresses share a choice. */
export class EndpointChoice {
  readonly #nodeName: string;
  readonly #hashes = new Map<string, number>();
  /** The latest choice of rows, by what is looked at first of a row. */
  readonly #chosen = new Map<string, ChosenOfRow>();

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
    const { endpoints } = row;
    if (endpoints.length <= most) return row;
    const key = `${endpoints.length} ${endpoints[0]?.ip} ${endpoints.at(-1)?.ip}`;
    let chosen = this.#chosen.get(key);
    if (chosen?.most !== most || !isSameChoice(chosen.row, row)) this.#chosen.set(key, (chosen = this.#chosenOf(row, most)));
    const { all, cluster, local } = chosen;
    return { ...row, endpoints: all.flatMap((index) => endpoints[index] ?? []), cluster, local };
  }

  #chosenOf(row: ServicePort, most: number): ChosenOfRow {
    const { endpoints, cluster, local } = row;
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
    return { row, most, all, cluster: keptOf(cluster), local: keptOf(local) };
  }

  #hashOf(ip: string): number {
    let hash = this.#hashes.get(ip);
    if (hash === undefined) this.#hashes.set(ip, (hash = hashOf(`${this.#nodeName} ${ip}`)));
    return hash;
  }
}

/** Tell whether two rows differ in nothing that a choice looks at. */
function isSameChoice(a: ServicePort, b: ServicePort): boolean {
  if (a.endpoints.length !== b.endpoints.length || !isEqual(a.cluster, b.cluster) || !isEqual(a.local, b.local)) return false;
  return a.endpoints.every(({ ip, isLocal }, index) => ip === b.endpoints[index]?.ip && isLocal === b.endpoints[index].isLocal);
}

/** FNV-1a, with the finish of MurmurHash3: addresses differ in their last characters only. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
