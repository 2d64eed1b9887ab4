import { isAddressIn, isDevice } from "../rules/values.ts";

/** A JSON object of `nft -j`. */
export type Json = Readonly<Record<string, unknown>>;

/** Tell whether a part of what nft printed is an object. Pure. */
export function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value that an expression has for a packet: several bits or parts are a list. */
export type KnownValue = string | number | readonly (string | number)[];

/** What a set or map has: for listings the elements that nft printed, for a host in memory its own. */
export interface NamedSet {
  /** What is under a value, with the data of a map; undefined: nothing. */
  find(value: KnownValue): { readonly data: unknown } | undefined;
  /** The data of all elements. */
  all(): readonly unknown[];
}

/** Sets and maps by name; those that are missing were not listed. */
export type NamedSets = Pick<ReadonlyMap<string, NamedSet>, "get">;

/** A set or map of elements as `nft -j` prints them. Pure. */
export function listedSet(elements: readonly unknown[]): NamedSet {
  const pairs = elements.map((element) => (Array.isArray(element) ? (element as readonly unknown[]) : [element]));
  return {
    find(value) {
      const found = pairs.find(([key]) => isOne(value, key) === true);
      return found === undefined ? undefined : { data: found[1] };
    },
    all: () => pairs.map(([, data]) => data),
  };
}

/** The set that an expression names or writes out; undefined: it was not listed. Pure. */
export function setOf(data: unknown, sets: NamedSets): NamedSet | undefined {
  if (typeof data === "string" && data.startsWith("@")) return sets.get(data.slice(1));
  const set = isJson(data) ? data["set"] : undefined;
  return Array.isArray(set) ? listedSet(set as readonly unknown[]) : undefined;
}

/** Whether a value is what the right side of a comparison says: a value, one of several, a prefix, a range, parts. Pure. */
export function isOne(value: KnownValue, right: unknown): boolean | undefined {
  if (Array.isArray(right)) return right.some((one) => isOne(value, one) === true);
  if (isJson(right)) {
    if (isJson(right["elem"])) return isOne(value, right["elem"]["val"]);
    if (Array.isArray(right["set"])) return isOne(value, right["set"]);
    if (isJson(right["prefix"])) return isAddressIn(String(value), `${String(right["prefix"]["addr"])}/${String(right["prefix"]["len"])}`);
    if (Array.isArray(right["range"])) return isInRange(value, right["range"] as readonly unknown[]);
    if (Array.isArray(right["concat"]) && Array.isArray(value)) {
      const parts = right["concat"] as readonly unknown[];
      return parts.every((part, index) => isOne((value as readonly (string | number)[])[index] ?? "", part) === true);
    }
    return undefined;
  }
  if (Array.isArray(value)) return (value as readonly unknown[]).some((one) => one === right);
  if (typeof right === "string" && right.endsWith("*")) return isDevice(String(value), right);
  return String(value) === String(right);
}

function isInRange(value: KnownValue, [from, to]: readonly unknown[]): boolean | undefined {
  if (typeof value === "number") return Number(from) <= value && value <= Number(to);
  return isAddressIn(String(value), `${String(from)}-${String(to)}`);
}
