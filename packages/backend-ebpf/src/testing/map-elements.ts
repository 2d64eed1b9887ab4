// What an element of the backend's maps is a part of, and which addresses it names.
import type { EbpfMap } from "../bytes/elements.ts";
import { decodeAddress, STRUCTS } from "../bytes/layout.ts";

/** Where the name lies, in the keys of maps whose elements are parts of something that is made and removed as a whole. */
const NAMES: ReadonlyMap<string, readonly [at: number, length: number]> = new Map([
  ["endpoints", STRUCTS.place.fields.list],
  ["source_ranges", STRUCTS.source_range.fields.ranges],
]);

/** The name of the list or the source ranges that an element is a part of; undefined: it is something by itself. */
export function groupOf(map: string, key: Buffer): string | undefined {
  const place = NAMES.get(map);
  return place === undefined ? undefined : key.toString("hex", place[0], place[0] + place[1]);
}

/** Where an element of a map has an address: in its key or its value, and after how many bytes. */
const ADDRESSES: Readonly<Partial<Record<EbpfMap, readonly ["key" | "value", number]>>> = {
  services: ["key", STRUCTS.destination.fields.address[0]],
  endpoints: ["value", STRUCTS.endpoint.fields.address[0]],
  node_addresses: ["key", 0],
  primaries: ["value", 0],
};

/** The addresses that an element of a map names, canonical; empty for a map of another program. */
export function addressesIn(map: string, key: Uint8Array, value: Uint8Array): readonly string[] {
  const place = ADDRESSES[map as EbpfMap];
  if (place === undefined) return [];
  const bytes = place[0] === "key" ? key : value;
  return [decodeAddress(Buffer.from(bytes.slice(place[1], place[1] + 16)))];
}

/** The lists and source ranges that an element of `services` names. */
export function namesIn(service: Buffer): readonly string[] {
  const { pod, host, outside, ranges } = STRUCTS.service.fields;
  const [list, length] = STRUCTS.choice.fields.list;
  const at = (offset: number): string => service.toString("hex", offset, offset + length);
  return [at(ranges[0]), ...[pod, host, outside].map(([choice]) => at(choice + list))];
}
