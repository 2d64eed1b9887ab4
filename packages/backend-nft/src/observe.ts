import type { Observed } from "@turnout/core/backend";
import { objectId } from "@turnout/core/backend";
import { elementComment, elementParts, elementText, readingListing, readListing, verdictText } from "@turnout/host/nft";
import type { ListedChain, Listing } from "@turnout/host/nft";
import { affinityKeyOf } from "./chains.ts";
import { COUNT_SETS } from "./count-sets.ts";
import { layoutName } from "./names.ts";
import {
  destinationKey,
  endpointMap,
  isLargePoolMap,
  largePoolKey,
  PLAIN_SETS,
  poolAt,
  PROTOCOLS,
  SET_NAMES,
  VERDICT_MAPS,
} from "./objects.ts";
import type { DestinationKind, ElementObject, NftObject } from "./objects.ts";
import { BASE_CHAINS } from "./skeleton.ts";

/** A table that has to be replaced as a whole. */
const ANOTHER: NftObject = { kind: "table", key: "layout", value: "another" };
const ANOTHER_TABLE: Observed<NftObject> = { objects: new Map([[objectId(ANOTHER), ANOTHER]]), lingering: [] };

/** Places without an element, in all lists of a table: an index has 32 bits, and one element at the last place would take all memory. */
const GAPS_MAX = 1_000_000;

/** A destination while its two maps are being read. */
interface PartialDestination {
  verdict: string;
  comment: string;
  readonly cluster: string[];
  readonly local: string[];
}

/**
 * Read the objects out of what `nft -j list table` printed.
 *
 * Shape: `isCounting` says which layout is ours, see {@link layoutName}.
 * Edges: a table of another layout, or without one of its sets, or with a base chain at another hook, or with elements at places that no list
 * has, is one object and nothing else, so that it is replaced as a whole; what somebody added or removed by hand shows as an object that
 * differs from any we would make.
 * @throws {ProxyError} `tool_failed` when the text isn't a listing of nft.
 */
export function parseTable(text: string, isCounting = false): Observed<NftObject> {
  const listing = readListing(text);
  return readingListing(() => objectsIn(listing, isCounting));
}

/** Read objects out of parts of a table, listed alike. */
export function objectsInParts(parts: Pick<Listing, "sets" | "chains">, isCounting = false): ReadonlyMap<string, NftObject> {
  return readingListing(() => objectsIn(parts, isCounting)).objects;
}

function objectsIn({ sets, chains }: Pick<Listing, "sets" | "chains">, isCounting: boolean): Observed<NftObject> {
  const layout = layoutName(isCounting);
  // An empty chain whose name says which layout the table has.
  const layoutChain = `layout-${layout}`;
  const setNames = isCounting ? [...SET_NAMES, ...Object.keys(COUNT_SETS)] : SET_NAMES;
  const isOurs = [...chains].every(([name, { hook }]) => BASE_CHAINS[name] === undefined || BASE_CHAINS[name] === hook);
  const objects = new Map<string, NftObject>();
  const add = (object: NftObject): void => void objects.set(objectId(object), object);
  // A set that somebody deleted can't be put back by itself (what asks it comes before it in a plan), nor a chain get another hook.
  if (!isOurs || !chains.has(layoutChain) || setNames.some((name) => !sets.has(name))) return ANOTHER_TABLE;
  const lists = new ListFiller(sets);
  add({ kind: "table", key: "layout", value: layout });
  for (const [name, chain] of chains) {
    if (name === layoutChain) continue;
    add({ kind: "chain", key: name, value: observedDigest(chain), rules: [] });
    const key = chain.comments.length === 0 ? undefined : affinityKeyOf(name);
    if (key !== undefined) add({ kind: "affinity", key, value: true });
  }
  for (const { endpoint } of affinityEntries(sets.get("affinity") ?? [])) add({ kind: "affinity", key: endpoint, value: true });
  for (const kind of PLAIN_SETS)
    for (const element of sets.get(kind) ?? []) add({ kind, key: elementText(element), value: true } satisfies ElementObject);
  for (const kind of ["service", "nodeport"] as const) {
    for (const [key, value] of destinations(kind, sets, lists)) add({ kind, key, value: { ...value } });
  }
  for (const [key, value] of affinityLists(sets.get("affinity-endpoints") ?? [], lists)) add({ kind: "affinity-endpoints", key, value });
  for (const [map, elements] of sets) {
    if (!isLargePoolMap(map)) continue;
    add({ kind: "map", key: map, value: true });
    for (const [key, value] of largePools(map, elements, lists)) add({ kind: "large-pool", key, value });
  }
  if (lists.isOverfull) return ANOTHER_TABLE;
  return { objects, lingering: [] };
}

/** One client that is remembered: the whole key of its element, and the part that stands for the endpoint. */
export interface AffinityEntry {
  readonly key: string;
  readonly endpoint: string;
}

/** Read the elements of `affinity` out of what nft printed of the set. */
export function affinityEntries(elements: readonly unknown[]): readonly AffinityEntry[] {
  return elements.map((element) => {
    const parts = elementParts(element);
    return { key: parts.join(" . "), endpoint: parts.slice(1).join(" . ") };
  });
}

/** What we wrote into the comments, if the number of rules still fits it. */
function observedDigest({ comments, isDropping }: ListedChain): string {
  // A rule that doesn't say what the first one says is not of the same making.
  const comment = comments.reduce((said, one) => (one === said ? said : `${said} and ${one}`), comments[0] ?? "");
  const count = comments.length;
  return comment.endsWith(`/${count}`) && !isDropping ? comment : `tampered ${comment} ${count}`;
}

function destinations(
  kind: DestinationKind,
  sets: ReadonlyMap<string, readonly unknown[]>,
  lists: ListFiller,
): ReadonlyMap<string, PartialDestination> {
  const found = new Map<string, PartialDestination>();
  const at = (key: string): PartialDestination => {
    let value = found.get(key);
    if (value === undefined) found.set(key, (value = { verdict: "", comment: "", cluster: [], local: [] }));
    return value;
  };
  for (const element of sets.get(VERDICT_MAPS[kind]) ?? []) {
    const [key, verdict] = element as [unknown, unknown];
    const value = at(elementText(key));
    value.verdict = verdictText(verdict);
    value.comment = elementComment(key);
  }
  for (const protocol of PROTOCOLS) {
    for (const element of sets.get(endpointMap(kind, protocol)) ?? []) {
      const [key, endpoint] = element as [unknown, unknown];
      const parts = elementParts(key);
      const destination = destinationKey(kind, protocol, parts.slice(0, -1).join(" . "));
      const index = Number(parts.at(-1));
      const { name, from } = poolAt(index);
      lists.put(at(destination)[name], index - from, elementText(endpoint));
    }
  }
  return found;
}

function largePools(map: string, elements: readonly unknown[], lists: ListFiller): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const element of elements) {
    const [keyed, endpoint] = element as [unknown, unknown];
    const parts = elementParts(keyed);
    const index = Number(parts.at(-1));
    const { from } = poolAt(index);
    const key = largePoolKey({ map, key: parts.slice(0, -1).join(" . "), from });
    const list = found.get(key) ?? [];
    lists.put(list, index - from, elementText(endpoint));
    found.set(key, list);
  }
  return found;
}

function affinityLists(elements: readonly unknown[], lists: ListFiller): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const element of elements) {
    const [key, verdict] = element as [unknown, unknown];
    const parts = elementParts(key);
    const name = parts.slice(0, -1).join(" . ");
    const list = found.get(name) ?? [];
    lists.put(list, Number(parts.at(-1)), verdictText(verdict).replace(/^goto /, ""));
    found.set(name, list);
  }
  return found;
}

/** Puts elements at their places in lists; gaps are "". */
class ListFiller {
  #gapsLeft: number;

  /** Elements come in no order, so a whole list has as many gaps meanwhile as it has elements, at most. */
  constructor(sets: ReadonlyMap<string, readonly unknown[]>) {
    this.#gapsLeft = GAPS_MAX + [...sets.values()].reduce((sum, elements) => sum + elements.length, 0);
  }

  /** Somebody has put elements far behind the ends of lists, and not all of them are in these lists. */
  get isOverfull(): boolean {
    return this.#gapsLeft < 0;
  }

  put(list: string[], index: number, text: string): void {
    if (!Number.isInteger(index) || index < 0) throw new TypeError(`${index} is no place in a list`);
    this.#gapsLeft -= Math.max(0, index - list.length);
    if (this.isOverfull) return;
    while (list.length < index) list.push("");
    list[index] = text;
  }
}
