import { invariant } from "@turnout/core";
import { encodeAddress, encodeCookie, encodeDestination, encodeEndpoint, encodeId, encodePlace, encodeService, STRUCTS } from "./layout.ts";
import type { EbpfObject, MapObject } from "../objects.ts";
import { encodeAddressFlags, encodePodRange, encodeSourceRange } from "./ranges.ts";

/** The maps that Turnout writes, by their names in C. */
export type WrittenMap =
  "services" | "endpoints" | "source_ranges" | "node_addresses" | "pod_ranges" | "primaries" | "counters" | "opted_out" | "settings";

/** The maps in which programs remember, by their names in C; nobody else writes them. */
export type RememberingMap = "affinity" | "asked_tcp" | "asked_udp" | "chosen_udp";

/** All maps, by their names in C. */
export type EbpfMap = WrittenMap | RememberingMap;

/** The maps that Turnout writes. */
export const WRITTEN_MAPS: readonly WrittenMap[] = [
  "services",
  "endpoints",
  "source_ranges",
  "node_addresses",
  "pod_ranges",
  "primaries",
  "counters",
  "opted_out",
  "settings",
];

/** The maps in which programs remember. */
export const REMEMBERING_MAPS: readonly RememberingMap[] = ["affinity", "asked_tcp", "asked_udp", "chosen_udp"];

/** All maps. */
export const ALL_MAPS: readonly EbpfMap[] = [...WRITTEN_MAPS, ...REMEMBERING_MAPS];

/** The map in which an object is. */
export function mapOf(object: MapObject): WrittenMap {
  return object.kind === "stray" ? strayMap(object.key) : MAPS[object.kind];
}

const MAPS: Readonly<Record<Exclude<MapObject["kind"], "stray">, WrittenMap>> = {
  service: "services",
  list: "endpoints",
  counter: "counters",
  ranges: "source_ranges",
  "node-address": "node_addresses",
  "pod-range": "pod_ranges",
  primary: "primaries",
  "opt-out": "opted_out",
  settings: "settings",
};

/** Tell whether an object is in a map of ours. */
export function isInMap(object: EbpfObject): object is MapObject {
  return object.kind === "stray" || object.kind in MAPS;
}

/** @throws {Error} for a key that observing never gives. */
function strayMap(key: string): WrittenMap {
  const map = WRITTEN_MAPS.find((name) => key.startsWith(`${name} `));
  invariant(map !== undefined, "a stray element is in a map of ours");
  return map;
}

/** One element of a map, as bytes. */
export interface Element {
  readonly map: WrittenMap;
  readonly key: Buffer;
  /** Of `counters` it is one CPU's part, all zero; each CPU has such a part. */
  readonly value: Buffer;
}

const PRESENT = Buffer.from([1, 0, 0, 0]);

/**
 * What an object is in the maps. Pure.
 *
 * Edges: a list and ranges are as many elements as they have parts; where an endpoint is "" there is none. Anything else is one. The element of `settings`
 * can't be deleted, as an array's can't.
 * @throws {ProxyError} `invalid_object` for an address that is none.
 */
export function elementsOf(object: MapObject): readonly Element[] {
  switch (object.kind) {
    case "service":
      return [{ map: "services", key: encodeDestination(object.key), value: encodeService(object.value) }];
    case "list":
      return object.value.flatMap((text, index): readonly Element[] =>
        text === "" ? [] : [{ map: "endpoints", key: encodePlace(object.key, index), value: encodeEndpoint(text) }],
      );
    case "counter":
      return [{ map: "counters", key: encodeId(object.key), value: Buffer.alloc(STRUCTS.counters.bytes) }];
    case "node-address":
      return [{ map: "node_addresses", key: encodeAddress(object.key), value: encodeAddressFlags(object.value) }];
    case "ranges":
      return object.value.map((cidr) => ({ map: "source_ranges", key: encodeSourceRange(object.key, cidr), value: PRESENT }));
    case "pod-range":
      return [{ map: "pod_ranges", key: encodePodRange(object.key), value: PRESENT }];
    case "primary":
      return [{ map: "primaries", key: encodeAddress(object.key), value: encodeAddress(object.value) }];
    case "opt-out":
      return [{ map: "opted_out", key: encodeCookie(object.key), value: PRESENT }];
    case "settings":
      return [{ map: "settings", key: Buffer.alloc(4), value: encodeCookie(object.value) }];
    case "stray":
      return [{ map: mapOf(object), key: Buffer.from(object.key.split(" ")[1] ?? "", "hex"), value: Buffer.from(object.value, "hex") }];
  }
}
