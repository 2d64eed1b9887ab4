import type { Observed } from "@turnout/core/backend";
import { objectId, ProxyError } from "@turnout/core/backend";
import { printHook } from "@turnout/host/nft-statement";
import type { NftElement, NftTable, NftTableChain, NftTableSink } from "@turnout/host";
import { COUNT_SETS } from "./count-sets.ts";
import { isClientsMap, isServingMap, layoutChain, layoutName } from "./names.ts";
import {
  ChainRules,
  destinationKey,
  endpointMap,
  FIRST_PLACE,
  isAffinePlace,
  isLargePoolMap,
  largePoolKey,
  PLAIN_SETS,
  poolAt,
  PROTOCOLS,
  SET_NAMES,
  SMALL_POOL_MAX,
  VERDICT_MAPS,
} from "./objects.ts";
import type { DestinationKind, ElementObject, NftObject } from "./objects.ts";
import { BASE_CHAINS } from "./skeleton.ts";

/** The value of a table that is none that this version makes, whatever it is told. */
export const ANOTHER = "another";

/** Between the parts of a key. */
const SEPARATOR = " . ";

/**
 * Places without an element, in all lists of a table: an index has 32 bits, and one element at the last place would take all memory. Twice as many
 * as there are elements at most, because lists that are being read have gaps.
 */
const GAPS_MAX = 2_000_000;

/** A destination while its two maps are being read. */
interface PartialDestination {
  verdict: string;
  comment: string;
  readonly cluster: string[];
  readonly local: string[];
}

/**
 * Reads objects out of a table, or out of parts of it.
 *
 * Shape: `isCounting` says which layout is ours, see {@link layoutName}. Elements become parts of objects as they come, because a table has a
 * hundred thousand of them.
 */
export class TableObjects implements NftTableSink {
  readonly #isCounting: boolean;
  readonly #objects = new Map<string, NftObject>();
  readonly #chains = new Map<string, NftTableChain>();
  readonly #sets = new Set<string>();
  readonly #lists = new ListFiller();
  readonly #destinations: Readonly<Record<DestinationKind, Map<string, PartialDestination>>> = { service: new Map(), nodeport: new Map() };

  constructor(isCounting = false) {
    this.#isCounting = isCounting;
  }

  chain(name: string, chain: NftTableChain): void {
    this.#chains.set(name, chain);
  }

  /** Of maps of clients and sets that count nothing is read: they hold what packets did, and no object of ours. */
  set(name: string): ((element: NftElement) => void) | undefined {
    this.#sets.add(name);
    if (isLargePoolMap(name)) {
      this.#add({ kind: "map", key: name, value: true });
      return this.#largePools(name);
    }
    if (isClientsMap(name)) {
      this.#add({ kind: "map", key: name, value: true });
      return undefined;
    }
    if (isServingMap(name)) {
      this.#add({ kind: "map", key: name, value: true });
      return this.#affinePool(name);
    }
    const plain = PLAIN_SETS.find((kind) => kind === name);
    if (plain !== undefined) return ({ key }) => this.#add({ kind: plain, key, value: true } satisfies ElementObject);
    return this.#partOfDestinations(name);
  }

  /**
   * Give the objects, after all that was read.
   *
   * Edges: a table of another layout, or without one of its sets, or with a base chain at another hook, or with elements at places that no list
   * has, is one object and nothing else, so that it is replaced as a whole; its value tells one that is whole, and counts or doesn't. What somebody
   * added or removed by hand shows as an object that differs from any we would make.
   */
  finish(): Observed<NftObject> {
    const isCounting = [this.#isCounting, !this.#isCounting].find((one) => this.#isWhole(one));
    const table: NftObject = { kind: "table", key: "layout", value: isCounting === undefined ? ANOTHER : layoutName(isCounting) };
    if (isCounting !== this.#isCounting) return { objects: new Map([[objectId(table), table]]), lingering: [] };
    this.#add(table);
    for (const [name, chain] of this.#chains) {
      if (name === layoutChain(isCounting)) continue;
      this.#add({ kind: "chain", key: name, value: observedChecksum(chain), rules: ChainRules.NONE });
    }
    for (const kind of ["service", "nodeport"] as const)
      for (const [key, value] of this.#destinations[kind]) this.#add({ kind, key, value: { ...value } });
    return { objects: this.#objects, lingering: [] };
  }

  /** A set that somebody deleted can't be put back by itself (what asks it comes before it in a plan), nor a chain get another hook. */
  #isWhole(isCounting: boolean): boolean {
    const setNames = isCounting ? [...SET_NAMES, ...Object.keys(COUNT_SETS)] : SET_NAMES;
    const isOurs = [...this.#chains].every(([name, { hook }]) => BASE_CHAINS[name] === undefined || printHook(BASE_CHAINS[name]) === hook);
    return isOurs && this.#chains.has(layoutChain(isCounting)) && setNames.every((name) => this.#sets.has(name)) && !this.#lists.isOverfull;
  }

  #add(object: NftObject): void {
    this.#objects.set(objectId(object), object);
  }

  #partOfDestinations(name: string): ((element: NftElement) => void) | undefined {
    for (const kind of ["service", "nodeport"] as const) {
      if (name === VERDICT_MAPS[kind])
        return ({ key, value, comment }) => {
          const destination = this.#destination(kind, key);
          destination.verdict = value;
          destination.comment = comment;
        };
      const protocol = PROTOCOLS.find((one) => name === endpointMap(kind, one));
      if (protocol !== undefined) {
        // By the key in this map: making that of the destination for each of a hundred thousand elements takes longer than looking it up.
        const known = new Map<string, PartialDestination>();
        return ({ key, value }) => {
          const { name: place, index } = placeIn(key);
          let destination = known.get(place);
          if (destination === undefined) {
            known.set(place, (destination = this.#destination(kind, destinationKey(kind, protocol, place))));
          }
          const { name: pool, from } = poolAt(index);
          this.#lists.put(destination[pool], index - from, value);
        };
      }
    }
    return undefined;
  }

  #destination(kind: DestinationKind, key: string): PartialDestination {
    const found = this.#destinations[kind];
    let value = found.get(key);
    if (value === undefined) found.set(key, (value = { verdict: "", comment: "", cluster: [], local: [] }));
    return value;
  }

  /** Large pools, by the keys of elements without the place. */
  #largePools(map: string): (element: NftElement) => void {
    const found = new Map<string, string[]>();
    return ({ key: keyed, value }) => {
      const { name, index } = placeIn(keyed);
      const { from } = poolAt(index);
      const key = largePoolKey({ map, key: name, from });
      let list = found.get(key);
      if (list === undefined) {
        found.set(key, (list = []));
        this.#add({ kind: "large-pool", key, value: list });
      }
      this.#lists.put(list, index - from, value);
    };
  }

  /** A pool with affinity: its endpoints by their places, and by their numbers. */
  #affinePool(map: string): (element: NftElement) => void {
    const list: string[] = [];
    return ({ key, value }) => {
      const chain = value.replace(/^goto /, "");
      if (!isAffinePlace(Number(key))) return this.#add({ kind: "affinity-serving", key: `${map} ${key}`, value: chain });
      if (list.length === 0) this.#add({ kind: "affinity-endpoints", key: map, value: list });
      this.#lists.put(list, Number(key) - FIRST_PLACE, chain);
    };
  }
}

/** Read the objects out of parts of a table. */
export function objectsInParts({ sets, chains }: NftTable, isCounting = false): Observed<NftObject> {
  const read = new TableObjects(isCounting);
  for (const [name, chain] of chains) read.chain(name, chain);
  for (const [name, elements] of sets) elements.forEach(read.set(name) ?? (() => undefined));
  return read.finish();
}

/** Take the last part off a key: the place in a list. @throws {ProxyError} `tool_failed` when it is none. */
function placeIn(key: string): { readonly name: string; readonly index: number } {
  const end = key.lastIndexOf(SEPARATOR);
  const index = Number(key.slice(end + SEPARATOR.length));
  if (end < 0 || !Number.isInteger(index)) throw new ProxyError("tool_failed", "an element has no place in a list", { object: key });
  return { name: key.slice(0, end), index };
}

const TAMPERED = "tampered";

/** Tell whether what was observed of a chain is none of our making, with whatever flags. */
export function isTampered(observed: string): boolean {
  return observed.startsWith(TAMPERED);
}

/** What is observed, as far as that can be told, of a chain whose rules are no longer those that we wrote. Pure. */
export function tampered(before: string): string {
  return isTampered(before) ? before : `${TAMPERED} ${before}`;
}

/** What we wrote into the comments, if the number of rules still fits it. */
function observedChecksum({ comments, isDropping }: NftTableChain): string {
  // A rule that doesn't say what the first one says is not of the same making.
  const comment = comments.reduce((said, one) => (one === said ? said : `${said} and ${one}`), comments[0] ?? "");
  const count = comments.length;
  return comment.endsWith(`/${count}`) && !isDropping ? comment : tampered(`${comment} ${count}`);
}

/** Every small pool has places that far, and most of them are vacant. */
const PLACES_MIN = 2 * SMALL_POOL_MAX;

/** Puts elements at their places in lists; gaps are "". */
class ListFiller {
  #gapsLeft = GAPS_MAX;

  /** Somebody has put elements far behind the ends of lists, and not all of them are in these lists. */
  get isOverfull(): boolean {
    return this.#gapsLeft < 0;
  }

  put(list: string[], index: number, text: string): void {
    // Elements come in no order, so a whole list has as many gaps meanwhile as it has elements, at most.
    this.#gapsLeft += 1 - Math.max(0, index - Math.max(list.length, PLACES_MIN));
    if (this.isOverfull) return;
    while (list.length < index) list.push("");
    list[index] = text;
  }
}
