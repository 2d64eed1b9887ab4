import type { IPFamily, Put } from "@turnout/core/backend";
import type { NftChainSpec, NftCommand, NftElements, NftElementWrite, NftStatement } from "@turnout/host/nft-statement";
import { NFT_FAMILY, TABLE } from "./names.ts";
import { slotsFor } from "./chains.ts";
import { endpointLocation, FIRST_PLACE, keyParts, largePoolLocation, POOLS, servingLocation, VERDICT_MAPS } from "./objects.ts";
import type {
  ChainObject,
  DestinationValue,
  LargePoolObject,
  NftObject,
  NodePortObject,
  ListLocation,
  ServiceObject,
  AffinityEndpointsObject,
} from "./objects.ts";
import { BASE_CHAINS } from "./skeleton.ts";

/** Elements of one statement; more make nft's parser slow, fewer the text long. */
export const ELEMENTS_PER_STATEMENT = 500;

/** A destination's two elements of interest: where its packets go, and to which endpoints. */
export type DestinationObject = ServiceObject | NodePortObject;

/** Collects statements for one family, elements of one set in a row joined. */
export class Writer {
  readonly #statements: NftStatement[] = [];
  readonly #family: "ip" | "ip6";
  readonly #open = new Map<string, NftElements & { readonly elements: NftElementWrite[] }>();

  constructor(family: IPFamily) {
    this.#family = NFT_FAMILY[family];
  }

  /** Everything written, in order; elements collected so far are written out. */
  finish(): readonly NftStatement[] {
    this.flush();
    return this.#statements;
  }

  /** Write commands, before the elements that are collected. */
  commands(...commands: readonly NftCommand[]): void {
    this.#statements.push(...commands);
  }

  add(set: string, key: string, value: string = "", comment: string = ""): void {
    this.#put("add", set, { key, value, comment });
  }

  /** Add the element of a list at a place. */
  addAt(map: string, key: string, place: number, value: string): void {
    this.#put("add", map, { ...placed(key, place), value, comment: "" });
  }

  delete(set: string, key: string, place?: number): void {
    this.#put("delete", set, { ...(place === undefined ? { key } : placed(key, place)), value: "", comment: "" });
  }

  /** Write out all elements collected so far: what is written later comes after them. */
  flush(): void {
    this.#statements.push(...this.#open.values());
    this.#open.clear();
  }

  #put(verb: NftElements["verb"], set: string, element: NftElementWrite): void {
    const head = verb === "add" ? set : `-${set}`;
    let open = this.#open.get(head);
    if (open === undefined) {
      this.#open.set(head, (open = { verb, family: this.#family, table: TABLE, set, parts: keyParts(set), elements: [] }));
    }
    if (open.elements.push(element) < ELEMENTS_PER_STATEMENT) return;
    this.#statements.push(open);
    this.#open.delete(head);
  }
}

/** A list that has its map for itself has places for keys. */
function placed(key: string, place: number): Pick<NftElementWrite, "key" | "place"> {
  return key === "" ? { key: String(place) } : { key, place };
}

/** Tell whether an object is a destination. */
export function isDestination(object: NftObject): object is DestinationObject {
  return object.kind === "service" || object.kind === "nodeport";
}

/** Make chains with exactly their rules, whatever is there under their names (changed, idle, or somebody's doing). */
export function writeChains(chains: readonly ChainObject[], family: "ip" | "ip6", writer: Writer): void {
  for (const { key } of chains) {
    const base = BASE_CHAINS[key];
    writer.commands({ add: chainOf(family, key, base === undefined ? {} : { ...base, policy: "accept" }) });
  }
  for (const { key, rules, value } of chains) {
    writer.commands({ flush: chainOf(family, key) });
    for (const expr of rules.make()) writer.commands({ add: { rule: { family, table: TABLE, chain: key, expr, comment: value } } });
  }
}

/** A chain of the table, as what a command is about. */
export function chainOf(family: "ip" | "ip6", name: string, base: Partial<NftChainSpec> = {}): { readonly chain: NftChainSpec } {
  return { chain: { family, table: TABLE, name, ...base } };
}

/** Take an object out; what a packet under way may still look up goes to `late`. */
export function writeRemoval(object: NftObject, writer: Writer, late: Writer): void {
  if (!isWritten(object)) return;
  if (isDestination(object)) {
    if (object.value.verdict !== "") writer.delete(VERDICT_MAPS[object.kind], object.key);
    for (const { name, from } of POOLS)
      deleteIndexed(endpointLocation(object.kind, object.key, from), object.value[name], [], writer, late);
  } else if (object.kind === "affinity-endpoints" || object.kind === "large-pool") {
    deleteIndexed(placeOf(object), object.value, [], writer, late);
  } else if (object.kind === "affinity-serving") {
    const { map, id } = servingLocation(object);
    writer.delete(map, id);
  } else {
    writer.delete(object.kind, object.key);
  }
}

/** First half of a change: elements that get another value are deleted (nft can't replace one in place). */
export function writeLeaving({ before, after }: Put<NftObject>, writer: Writer, late: Writer): void {
  if (before === undefined) return;
  if (isDestination(after) && isDestination(before)) {
    const isChanging = verdictText(before.value) !== verdictText(after.value);
    if (before.value.verdict !== "" && isChanging) writer.delete(VERDICT_MAPS[after.kind], after.key);
    // The same chain draws on: it takes a place that is vacant now for what it is.
    const rest = isChanging ? late : writer;
    for (const { name, from } of POOLS) {
      deleteIndexed(endpointLocation(after.kind, after.key, from), before.value[name], after.value[name], writer, rest);
    }
  } else if (after.kind === "affinity-endpoints" && before.kind === "affinity-endpoints") {
    deleteIndexed(placeOf(after), before.value, after.value, writer, late);
  } else if (after.kind === "large-pool" && before.kind === "large-pool") {
    const isChanging = slotsFor(before.value.length) !== slotsFor(after.value.length);
    deleteIndexed(placeOf(after), before.value, after.value, writer, isChanging ? late : writer);
  } else if (after.kind === "affinity-serving") {
    const { map, id } = servingLocation(after);
    writer.delete(map, id);
  }
}

/** Second half: what is new or has a new value is added. Endpoints of `staged` objects are there already. */
export function writeComing({ before, after }: Put<NftObject>, writer: Writer, staged: ReadonlySet<NftObject>): void {
  if (isDestination(after)) {
    const old = before !== undefined && isDestination(before) ? before.value : undefined;
    if (!staged.has(after)) writeEndpoints(after, old, writer);
    if (old !== undefined && verdictText(old) === verdictText(after.value)) return;
    writer.add(VERDICT_MAPS[after.kind], after.key, after.value.verdict, after.value.comment);
  } else if (after.kind === "affinity-endpoints") {
    const targets = after.value.map((chain) => `goto ${chain}`);
    const had = before?.kind === "affinity-endpoints" ? before.value.map((chain) => `goto ${chain}`) : [];
    addIndexed(placeOf(after), had, targets, writer);
  } else if (after.kind === "large-pool") {
    if (!staged.has(after)) addIndexed(placeOf(after), before?.kind === "large-pool" ? before.value : [], after.value, writer);
  } else if (after.kind === "affinity-serving") {
    const { map, id } = servingLocation(after);
    writer.add(map, id, `goto ${after.value}`);
  } else if (isWritten(after)) {
    writer.add(after.kind, after.key);
  }
}

/** Tell whether an object is an element of a map or set that we write; chains, maps and the table are, too, but elsewhere. */
function isWritten(object: NftObject): object is Exclude<NftObject, { readonly kind: "table" | "chain" | "map" }> {
  return object.kind !== "table" && object.kind !== "chain" && object.kind !== "map";
}

/** Add the endpoints of something new, that nothing refers to yet. */
export function writeAhead(object: DestinationObject | LargePoolObject, writer: Writer): void {
  if (object.kind === "large-pool") addIndexed(placeOf(object), [], object.value, writer);
  else writeEndpoints(object, undefined, writer);
}

/** Add the endpoints of a destination that differ from `before`. */
function writeEndpoints({ kind, key, value }: DestinationObject, before: DestinationValue | undefined, writer: Writer): void {
  for (const { name, from } of POOLS) addIndexed(endpointLocation(kind, key, from), before?.[name] ?? [], value[name], writer);
}

function verdictText({ verdict, comment }: DestinationValue): string {
  return `${verdict} ${comment}`;
}

function placeOf(object: AffinityEndpointsObject | LargePoolObject): ListLocation {
  return object.kind === "affinity-endpoints" ? { map: object.key, key: "", from: FIRST_PLACE } : largePoolLocation(object);
}

function addIndexed({ map, key, from }: ListLocation, before: readonly string[], after: readonly string[], writer: Writer): void {
  for (let index = 0; index < after.length; index++) {
    const text = after[index] ?? "";
    if (text !== "" && before[index] !== text) writer.addAt(map, key, from + index, text);
  }
}

/**
 * Delete the elements of a list that change (now, so that they can be added anew) or end (`late` where another chain will pick: the
 * rules a packet has entered are those of its arrival, but its lookups are not).
 */
function deleteIndexed(
  { map, key, from }: ListLocation,
  before: readonly string[],
  after: readonly string[],
  writer: Writer,
  late: Writer,
): void {
  for (let index = 0; index < before.length; index++) {
    // Vacant places are "".
    if (before[index] === "" || before[index] === after[index]) continue;
    (index < after.length ? writer : late).delete(map, key, from + index);
  }
}
