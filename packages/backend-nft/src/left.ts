import { objectId } from "@turnout/core/backend";
import type { IPFamily, KernelObject, LeftObjects, WhatIsLeft } from "@turnout/core/backend";
import { readNftKey } from "@turnout/host";
import type { NftChange } from "@turnout/host";
import { isClientsMap, isServingMap, NFT_FAMILY, TABLE } from "./names.ts";
import {
  destinationKey,
  endpointMap,
  FIRST_PLACE,
  isAffinePlace,
  isLargePoolMap,
  keyParts,
  largePoolKey,
  poolAt,
  PROTOCOLS,
} from "./objects.ts";
import type { DestinationKind, DestinationValue, NftObject, PoolName } from "./objects.ts";
import { tampered } from "./observe.ts";

/** What stands in a list for an element that isn't there, see plan. */
const GAP = "";
/** What is there and not known: no wanted value is like it, so a plan deletes it before it adds another. */
const UNKNOWN = "?";
/** An element further behind the end of a list is not worth a list with so many gaps. */
const BEHIND_MAX = 64;

/**
 * Say what a commit of somebody else has left of our objects; undefined: it has done something of which that can't be told, so that everything has
 * to be compared.
 *
 * Edges: of a chain whose rules came or went it is told that it is another one, so that it is put anew with exactly its rules. An element that came may have any
 * value. Nothing is told of tables, sets and chains that came.
 */
export function leftObjects(changes: readonly NftChange[] | undefined, family: IPFamily): LeftObjects | undefined {
  const ours = changes?.filter(
    ({ kind, table, name }) => table === `${NFT_FAMILY[family]} ${TABLE}` && !(kind === "elements" && isClientsMap(name)),
  );
  if (ours === undefined) return undefined;
  // Deleting a table deletes all that is in it; what is made comes after that.
  if (ours.some(isOfTable)) return ours.every(({ verb }) => verb === "deleted") ? "nothing" : undefined;
  const left = new Map<string, WhatIsLeft>();
  for (const change of ours) {
    const touches = touchesBy(change, family);
    if (touches === undefined) return undefined;
    for (const { id, whatIsLeft } of touches) left.set(id, after(left.get(id), whatIsLeft));
  }
  return left;
}

function isOfTable({ kind }: NftChange): boolean {
  return kind === "table";
}

/** What is left after one thing and then another. */
function after(first: WhatIsLeft | undefined, then: WhatIsLeft): WhatIsLeft {
  return first === undefined ? then : (held) => then(first(held));
}

/** What one change does to one object. */
interface Touch {
  readonly id: string;
  readonly whatIsLeft: WhatIsLeft;
}

function touchesBy({ verb, kind, name, keys }: NftChange, family: IPFamily): readonly Touch[] | undefined {
  if (kind === "rule" || (kind === "chain" && verb === "deleted"))
    return name.startsWith("layout-")
      ? undefined
      : [{ id: idText("chain", name), whatIsLeft: kind === "rule" ? otherRules : () => undefined }];
  if (kind !== "elements") return undefined;
  const touches = keys.map((key) => touchOf(name, key, verb === "made", family));
  return touches.every((touch) => touch !== undefined) ? touches : undefined;
}

function otherRules(held: KernelObject | undefined): KernelObject | undefined {
  return typeof held?.value === "string" ? { ...held, value: tampered(held.value) } : undefined;
}

/** What an element that came or went does to the object that it is a part of; undefined: it is of none that is known. */
function touchOf(set: string, key: Buffer, isMade: boolean, family: IPFamily): Touch | undefined {
  const parts = readNftKey(key, family, keyParts(set));
  if (parts === undefined) return undefined;
  switch (set) {
    case "services":
      return verdictTouch("service", parts, isMade);
    case "nodeports":
      return verdictTouch("nodeport", parts, isMade);
    case "cluster-ips":
    case "nodeport-ips":
    case "hairpin":
      return plainTouch(set, parts, isMade);
    default:
      return isServingMap(set) ? servingTouch(set, parts, isMade) : endpointTouch(set, parts, isMade);
  }
}

function plainTouch(kind: NftObject["kind"], parts: readonly string[], isMade: boolean): Touch {
  const object: KernelObject = { kind, key: parts.join(" . "), value: true };
  return { id: objectId(object), whatIsLeft: () => (isMade ? object : undefined) };
}

/** An endpoint of a pool with affinity, by its place or by its number. */
function servingTouch(map: string, [key = ""]: readonly string[], isMade: boolean): Touch {
  if (isAffinePlace(Number(key)))
    return listTouch(
      "affinity-endpoints",
      [key],
      isMade,
      () => map,
      (place) => place - FIRST_PLACE,
    );
  const object: KernelObject = { kind: "affinity-serving", key: `${map} ${key}`, value: UNKNOWN };
  return { id: objectId(object), whatIsLeft: () => (isMade ? object : undefined) };
}

function verdictTouch(kind: DestinationKind, parts: readonly string[], isMade: boolean): Touch {
  const key = parts.join(" . ");
  return destinationTouch(kind, key, (value) => ({ ...value, verdict: isMade ? UNKNOWN : "", comment: "" }));
}

function destinationTouch(kind: DestinationKind, key: string, change: (value: DestinationValue) => DestinationValue): Touch {
  const whatIsLeft: WhatIsLeft = (held) => {
    const value = change((held?.value as DestinationValue | undefined) ?? { verdict: "", comment: "", cluster: [], local: [] });
    const isEmpty = value.verdict === "" && [...value.cluster, ...value.local].every((endpoint) => endpoint === GAP);
    return isEmpty ? undefined : { kind, key, value };
  };
  return { id: idText(kind, key), whatIsLeft };
}

/** A list that is an object of its own; the last part of an element's key is its place. */
function listTouch(
  kind: NftObject["kind"],
  parts: readonly string[],
  isMade: boolean,
  keyOf: (parts: readonly string[], place: number) => string,
  placeOf: (index: number) => number = (index) => index,
): Touch {
  const index = Number(parts.at(-1));
  const key = keyOf(parts.slice(0, -1), index);
  const whatIsLeft: WhatIsLeft = (held) => {
    const list = changedList((held?.value as readonly string[] | undefined) ?? [], placeOf(index), isMade);
    return list.every((one) => one === GAP) ? undefined : { kind, key, value: list };
  };
  return { id: idText(kind, key), whatIsLeft };
}

/** An endpoint of a destination, or of a large pool. */
function endpointTouch(map: string, parts: readonly string[], isMade: boolean): Touch | undefined {
  const index = Number(parts.at(-1));
  const pool: { readonly name: PoolName; readonly from: number } = poolAt(index);
  if (isLargePoolMap(map)) {
    const keyOf = (rest: readonly string[]): string => largePoolKey({ map, key: rest.join(" . "), from: pool.from });
    return listTouch("large-pool", parts, isMade, keyOf, (place) => place - pool.from);
  }
  for (const kind of ["service", "nodeport"] as const satisfies readonly DestinationKind[])
    for (const protocol of PROTOCOLS) {
      if (map !== endpointMap(kind, protocol)) continue;
      const key = destinationKey(kind, protocol, parts.slice(0, -1).join(" . "));
      return destinationTouch(kind, key, (value) => ({ ...value, [pool.name]: changedList(value[pool.name], index - pool.from, isMade) }));
    }
  return undefined;
}

/** A list with another element at a place, or without one. */
function changedList(list: readonly string[], place: number, isMade: boolean): readonly string[] {
  if (!isMade && place >= list.length) return list;
  const changed = [...list];
  // Far behind the end nothing looks it up, and the next comparison finds it.
  if (place > list.length + BEHIND_MAX) return list;
  while (changed.length < place) changed.push(GAP);
  changed[place] = isMade ? UNKNOWN : GAP;
  return changed;
}

function idText(kind: string, key: string): string {
  return objectId({ kind, key, value: "" });
}
