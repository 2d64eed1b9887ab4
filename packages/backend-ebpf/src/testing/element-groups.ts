import { STRUCTS } from "../layout.ts";

/** Where the name lies, in the keys of maps whose elements are parts of something that is made and removed as a whole. */
const NAMES: ReadonlyMap<string, readonly [at: number, length: number]> = new Map([
  ["endpoints", STRUCTS.place.fields.list],
  ["source_ranges", STRUCTS.source_range.fields.ranges],
]);

/** The name of the list or the source ranges that an element is a part of; undefined: it is something by itself. Keys are latin1. */
export function groupOf(map: string, key: string): string | undefined {
  const place = NAMES.get(map);
  return place === undefined ? undefined : key.slice(place[0], place[0] + place[1]);
}
