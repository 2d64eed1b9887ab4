import type { Capacity, Content } from "../../contract/backend.ts";
import type { ServicePort } from "../../model/rows.ts";

/** A row, with how much of each capacity it takes, and the contents that it shares with others once they are asked for. */
export interface SharedRow {
  readonly row: ServicePort;
  readonly sizes: readonly number[];
  /** By capacity. */
  readonly contents: Map<number, readonly Content[]>;
}

/** What {@link capacitiesCounted} needs of a namespace. */
interface CountedNamespace {
  readonly services: ReadonlyMap<string, { readonly rows: ReadonlyMap<string, SharedRow> }>;
  readonly sums: readonly number[];
  readonly distinct: Map<number, ReadonlyMap<string, number>>;
}

/** One capacity: how much each namespace may have at most, and how much each wants. */
export interface CountedCapacity {
  /** Infinite where all fit. */
  readonly level: number;
  readonly sums: readonly number[];
  /** Whether equal contents count once. */
  readonly isShared: boolean;
}

/** Say how much of each capacity each namespace wants, and may have. */
export function capacitiesCounted(capacities: readonly Capacity[], all: readonly CountedNamespace[]): readonly CountedCapacity[] {
  return capacities.map((capacity, at) => {
    const plain = all.map(({ sums }) => sums[at] ?? 0);
    const level = levelOf(plain, capacity.max);
    if (level === Infinity || capacity.contentsOf === undefined) return { level, sums: plain, isShared: false };
    const distinct = all.map((namespace) => distinctOf(namespace, capacity, at));
    const sums = distinct.map(sum);
    const isAllIn = sum(new Map(distinct.flatMap((contents) => [...contents]))) <= capacity.max;
    return { level: isAllIn ? Infinity : levelOf(sums, capacity.max), sums, isShared: true };
  });
}

/** What is left of a namespace's share, and which contents are in it. */
export class Place {
  readonly #capacities: readonly Capacity[];
  readonly #left: number[];
  /** Contents that are in, of capacities where equal ones count once. */
  readonly #seen: readonly (Set<string> | undefined)[];

  constructor(capacities: readonly Capacity[], counted: readonly CountedCapacity[]) {
    this.#capacities = capacities;
    this.#left = counted.map(({ level }) => level);
    this.#seen = counted.map(({ level, isShared }) => (isShared && level !== Infinity ? new Set() : undefined));
  }

  /** Tell whether so much is left. */
  fits(sizes: readonly number[]): boolean {
    return this.#lackOf(sizes) < 0;
  }

  /** Tell whether a row of at least these sizes may fit: what it shares may be in already. */
  mayFit(least: readonly number[]): boolean {
    return this.fits(least.map((size, at) => (this.#seen[at] === undefined ? size : 0)));
  }

  /** Take what these rows need if all of it is left; `sums`: their sizes together. */
  takeAll(rows: ReadonlyMap<string, SharedRow>, sums: readonly number[]): boolean {
    return this.#take([...rows.values()], sums) < 0;
  }

  /** Take what a row needs; gives which capacity has too little left, -1: none. */
  take(row: SharedRow): number {
    return this.#take([row], row.sizes);
  }

  #take(rows: readonly SharedRow[], sums: readonly number[]): number {
    const added = this.#seen.map((seen, at) => {
      const contents = seen && rows.flatMap((row) => contentsOf(row, this.#capacities[at], at));
      return contents && new Map(contents.filter(({ key }) => !seen?.has(key)).map(({ key, size }) => [key, size]));
    });
    const sizes = added.map((contents, at) => (contents === undefined ? (sums[at] ?? 0) : sum(contents)));
    const lack = this.#lackOf(sizes);
    if (lack >= 0) return lack;
    for (const [at, size] of sizes.entries()) this.#left[at] = (this.#left[at] ?? 0) - size;
    for (const [at, contents] of added.entries()) for (const key of contents?.keys() ?? []) this.#seen[at]?.add(key);
    return -1;
  }

  #lackOf(sizes: readonly number[]): number {
    return sizes.findIndex((size, at) => size > (this.#left[at] ?? 0));
  }
}

function distinctOf({ services, distinct }: CountedNamespace, capacity: Capacity, at: number): ReadonlyMap<string, number> {
  const known = distinct.get(at);
  if (known !== undefined) return known;
  const contents = new Map<string, number>();
  for (const { rows } of services.values())
    for (const row of rows.values()) for (const { key, size } of contentsOf(row, capacity, at)) contents.set(key, size);
  distinct.set(at, contents);
  return contents;
}

function contentsOf({ row, contents }: SharedRow, capacity: Capacity | undefined, at: number): readonly Content[] {
  let found = contents.get(at);
  if (found === undefined) contents.set(at, (found = capacity?.contentsOf?.(row) ?? []));
  return found;
}

function sum(contents: ReadonlyMap<string, number>): number {
  let all = 0;
  for (const size of contents.values()) all += size;
  return all;
}

/** How much each namespace may have at most, so that all together have no more than `max`; infinite where all fit. Pure. */
function levelOf(sums: readonly number[], max: number): number {
  if (sums.reduce((all, one) => all + one, 0) <= max) return Infinity;
  let left = max;
  const sorted = sums.toSorted((one, other) => one - other);
  for (const [at, one] of sorted.entries()) {
    const level = Math.floor(left / (sorted.length - at));
    if (one > level) return level;
    left -= one;
  }
  return Infinity;
}
