import { keepPlaces } from "@turnout/core/backend";
import type { Plain } from "@turnout/core/backend";
import { printRule } from "@turnout/host/nft-statement";
import type { NftPartKind, NftRuleStatement } from "@turnout/host/nft-statement";
import { digest, isServingMap, LOOPBACK_SET } from "./names.ts";

/** The whole table with its maps and sets; its value is the layout's version. */
export interface TableObject {
  readonly kind: "table";
  readonly key: "layout";
  readonly value: string;
}

/** A rule: its statements. */
export type ChainRule = readonly NftRuleStatement[];

/** The rules of a chain, made whenever they are asked for: as text they would take a third of the memory, as trees as much as all else. */
export class ChainRules {
  static readonly NONE: ChainRules = new ChainRules(() => []);
  readonly #make: () => readonly ChainRule[];

  constructor(make: () => readonly ChainRule[]) {
    this.#make = make;
  }

  make(): readonly ChainRule[] {
    return this.#make();
  }

  /** As people read them. */
  toJSON(): readonly string[] {
    return this.#make().map(printRule);
  }
}

/** A chain. Equality is by `value`, a digest of its rules that also travels in the comment of each. */
export interface ChainObject {
  readonly kind: "chain";
  readonly key: string;
  /** `digest/number of rules`; what observe finds in a chain that isn't as we made it differs from any digest. */
  readonly value: string;
  /** Its rules, without comments; none for an observed chain. */
  readonly rules: ChainRules;
}

/** Where a destination's packets go, and the endpoints of each pool that its rules use, as `address . port` at their indexes ("": vacant). */
export interface DestinationValue {
  readonly [key: string]: Plain;
  /** `goto pick-tcp`, `drop`, …; "" when only endpoints are there (a load that was cut off). */
  readonly verdict: string;
  /** Name of the row, shown by `nft list`; "" for none. */
  readonly comment: string;
  readonly cluster: readonly string[];
  readonly local: readonly string[];
}

/** The pools a destination's rules pick from. */
export type PoolName = "cluster" | "local";

/** The pools, and the index at which each begins in a destination's endpoints: far apart, so that each has vacant slots behind it. */
export const POOLS: readonly { readonly name: PoolName; readonly from: number }[] = [
  { name: "cluster", from: 0 },
  { name: "local", from: 1_000_000 },
];

/** One destination by address: an element of `services` and its elements of `endpoints-tcp` (or its protocol). Key: `10.96.0.1 . tcp . 80`. */
export interface ServiceObject {
  readonly kind: "service";
  readonly key: string;
  readonly value: DestinationValue;
}

/** One node port: an element of `nodeports` and its elements of `nodeport-endpoints-tcp`. Key: `tcp . 30080`. */
export interface NodePortObject {
  readonly kind: "nodeport";
  readonly key: string;
  readonly value: DestinationValue;
}

/** The endpoint chains an affinity chain picks from, in the order of their places. Key: the map that `servingMap` names. */
export interface AffinityEndpointsObject {
  readonly kind: "affinity-endpoints";
  readonly key: string;
  readonly value: readonly string[];
}

/**
 * A map of large pools (they come and go with what is in them: few clusters have large pools in all of them), or one of a row with affinity.
 *
 * Edges: what packets write into a map of clients is no object. It goes with the map.
 */
export interface MapObject {
  readonly kind: "map";
  /** Its name, from {@link largePoolMap}, `clientsMap` or `servingMap`. */
  readonly key: string;
  readonly value: true;
}

/** A large pool of one destination, as `address . port` in index order. Key: from {@link largePoolKey}. */
export interface LargePoolObject {
  readonly kind: "large-pool";
  readonly key: string;
  readonly value: readonly string[];
}

/** The endpoint chain to which clients of a pool with affinity are sent again. Key: the map, and the endpoint's number: `serving-… 1346396197`. */
export interface AffinityServingObject {
  readonly kind: "affinity-serving";
  readonly key: string;
  readonly value: string;
}

/** An element of a plain set. */
export interface ElementObject {
  readonly kind: "cluster-ips" | "hairpin" | "nodeport-ips";
  readonly key: string;
  readonly value: true;
}

/** Everything this backend keeps in the kernel. */
export type NftObject =
  | TableObject
  | ChainObject
  | ServiceObject
  | NodePortObject
  | MapObject
  | LargePoolObject
  | AffinityEndpointsObject
  | AffinityServingObject
  | ElementObject;

/** Lay endpoints out as the kernel has them, as far as that goes: packets pick any place of a pool. Where nothing moves it is `wanted` itself. Pure. */
export function keepEndpointPlaces(wanted: NftObject, held: NftObject): NftObject {
  if (
    (wanted.kind === "large-pool" || wanted.kind === "affinity-endpoints") &&
    (held.kind === "large-pool" || held.kind === "affinity-endpoints")
  ) {
    const value = keepPlaces(wanted.value, held.value);
    return value === wanted.value ? wanted : { ...wanted, value };
  }
  if ((wanted.kind !== "service" && wanted.kind !== "nodeport") || (held.kind !== "service" && held.kind !== "nodeport")) return wanted;
  const [of, at] = [wanted.value, held.value];
  const [cluster, local] = [keepPlaces(of.cluster, at.cluster), keepPlaces(of.local, at.local)];
  return cluster === of.cluster && local === of.local ? wanted : { ...wanted, value: { ...of, cluster, local } };
}

/** Names of the plain sets. */
export const PLAIN_SETS: readonly ElementObject["kind"][] = ["cluster-ips", "hairpin", "nodeport-ips"];

/** Protocols a destination can have, as nft says them; each has endpoint maps of its own. */
export const PROTOCOLS = ["tcp", "udp", "sctp"] as const;

/** The map that holds where each kind of destination's packets go. */
export const VERDICT_MAPS: Readonly<Record<DestinationKind, string>> = { service: "services", nodeport: "nodeports" };

/** The two kinds of destination. */
export type DestinationKind = "service" | "nodeport";

/** The map that holds the endpoints of a kind of destination for one protocol. */
export function endpointMap(kind: DestinationKind, protocol: string): string {
  return kind === "service" ? `endpoints-${protocol}` : `nodeport-endpoints-${protocol}`;
}

/**
 * A pool with affinity has one map: endpoints by their numbers, which have 31 bits with the highest set, and below that by their places. No packet comes
 * with such priorities.
 */
export const FIRST_ID: number = 2 ** 30;
/** The place of the first endpoint of a pool with affinity. */
export const FIRST_PLACE: number = 2 ** 29;

/** Tell whether an element of the map of a pool with affinity is an endpoint at a place. */
export function isAffinePlace(key: number): boolean {
  return key >= FIRST_PLACE && key < FIRST_ID;
}

/** The key of an element of a list without its place; undefined: the element is of no list. */
export function listKey(map: string, key: string): string | undefined {
  if (isServingMap(map)) return isAffinePlace(Number(key)) ? "" : undefined;
  return /(?:^|-)endpoints-/.test(map) ? key.slice(0, key.lastIndexOf(" . ")) : undefined;
}

/** Names of all sets and maps of the table. */
export const SET_NAMES: readonly string[] = [
  ...PLAIN_SETS,
  ...Object.values(VERDICT_MAPS),
  ...(["service", "nodeport"] as const).flatMap((kind) => PROTOCOLS.map((protocol) => endpointMap(kind, protocol))),
  LOOPBACK_SET,
];

const KEY_PARTS: Readonly<Record<string, readonly NftPartKind[]>> = {
  services: ["address", "protocol", "port"],
  nodeports: ["protocol", "port"],
  "cluster-ips": ["address"],
  "nodeport-ips": ["address"],
  hairpin: ["address", "address"],
  [LOOPBACK_SET]: ["protocol"],
};
const SERVING_PARTS: readonly NftPartKind[] = ["number"];
const ENDPOINT_PARTS: readonly NftPartKind[] = ["address", "port", "number"];
const NODE_PORT_ENDPOINT_PARTS: readonly NftPartKind[] = ["port", "number"];

/** What the parts of a key are in one of our sets and maps. */
export function keyParts(set: string): readonly NftPartKind[] {
  if (isServingMap(set)) return SERVING_PARTS;
  return KEY_PARTS[set] ?? (set.startsWith("nodeport-") ? NODE_PORT_ENDPOINT_PARTS : ENDPOINT_PARTS);
}

/** Where a list is: the map, the key of its elements without the index, and its first index. */
export interface ListLocation {
  readonly map: string;
  readonly key: string;
  readonly from: number;
}

/** Endpoints of a pool that still lies with all others of its protocol; larger ones lie in one of {@link LARGE_POOL_MAPS} maps. */
export const SMALL_POOL_MAX = 16;

/**
 * How many maps large pools are spread over, for each protocol and kind of destination.
 *
 * The kernel lists a map in pieces and walks it from its beginning for each, so that listing one map costs the square of what is in it: 35 s
 * for a million elements, 2 s for as many in 32 maps.
 */
const LARGE_POOL_MAPS = 32;

/** The map that a destination's large pools lie in; it depends on the destination alone. */
export function largePoolMap(kind: DestinationKind, key: string): string {
  const { map } = endpointLocation(kind, key, 0);
  return `${map}-${parseInt(digest(key).slice(0, 4), 16) % LARGE_POOL_MAPS}`;
}

/** Tell whether a map is one of large pools, by its name. */
export function isLargePoolMap(name: string): boolean {
  return /^(?:nodeport-)?endpoints-[a-z]+-\d+$/.test(name);
}

/** The identity of a large pool: its map, and the key of its first element. */
export function largePoolKey({ map, key, from }: ListLocation): string {
  return `${map} ${key} . ${from}`;
}

/** The pool that an index among the elements of endpoints is of. */
export function poolAt(index: number): (typeof POOLS)[number] {
  return POOLS.findLast((pool) => index >= pool.from) ?? { name: "cluster", from: 0 };
}

/** The map and the key in it of an endpoint by its number. */
export function servingLocation({ key }: Pick<AffinityServingObject, "key">): { readonly map: string; readonly id: string } {
  const [map = "", id = ""] = key.split(" ");
  return { map, id };
}

/** Where the elements of a large pool are; undoes {@link largePoolKey}. */
export function largePoolLocation({ key: text }: Pick<LargePoolObject, "key">): ListLocation {
  const [, map = "", key = "", from = "0"] = /^(\S+) (.*) \. (\d+)$/.exec(text) ?? [];
  return { map, key, from: Number(from) };
}

/** Where the endpoints of a destination's pool are that begins at index `from`. */
export function endpointLocation(kind: DestinationKind, key: string, from: number): ListLocation {
  const parts = key.split(" . ");
  const [protocol = ""] = parts.splice(kind === "service" ? 1 : 0, 1);
  return { map: endpointMap(kind, protocol), key: parts.join(" . "), from };
}

/** The key of the destination whose endpoints are under `key` in the map of a protocol; undoes {@link endpointLocation}. */
export function destinationKey(kind: DestinationKind, protocol: string, key: string): string {
  return kind === "service" ? key.replace(" . ", ` . ${protocol} . `) : `${protocol} . ${key}`;
}
