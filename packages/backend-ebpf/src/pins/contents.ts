import type { Fingerprints } from "@turnout/host";
import type { ElementSpace, Elements } from "@turnout/host/bpf";
import { elementsOf, isInMap, mapOf, WRITTEN_MAPS } from "../bytes/elements.ts";
import type { WrittenMap } from "../bytes/elements.ts";
import { encodeDestination, encodeId, STRUCTS } from "../bytes/layout.ts";
import type { MapObject } from "../objects.ts";
import type { PinnedMaps } from "./pinned-maps.ts";
import type { Step } from "../plan.ts";

/** In so many parts a map is digested: of those that we write to nothing is known until they are read again. */
const PARTS = 64;
const WORD = Int32Array.BYTES_PER_ELEMENT;
/** A plan of more steps is taken to write to all parts. */
const STEPS_MAX = 1_000;
/**
 * Maps that are read together, and the share of a core that this takes at most: services and all that is small come round sooner than the endpoints.
 * Counters change all the time.
 */
export const DIGESTED: readonly { readonly names: readonly WrittenMap[]; readonly share: number }[] = [
  { names: WRITTEN_MAPS.filter((name) => name !== "counters" && name !== "endpoints"), share: 0.001 },
  { names: ["endpoints"], share: 0.0005 },
];

/**
 * Read maps and digest each in parts, whatever the order of its elements: 130,000 elements take some tens of milliseconds.
 * @throws {ProxyError}
 */
export async function readContents(
  { open }: Pick<PinnedMaps, "open">,
  names: readonly WrittenMap[],
  space: ElementSpace,
): Promise<Fingerprints> {
  const fingerprints = new Map<string, string>();
  for (const name of names) {
    const map = open?.maps.get(name);
    if (map === undefined) continue;
    const sums = new Int32Array(PARTS);
    for await (const { count, keys, values } of map.read(space)) {
      const [keyWords, valueWords] = [wordsOf(keys), wordsOf(values)];
      const [keyLength, valueLength] = [keyWords.length / count, valueWords.length / count];
      for (let at = 0; at < count; at += 1) {
        const part = partOf(name, keyWords, at * keyLength, keyLength);
        const key = mixed(keyWords, at * keyLength, keyLength, 1);
        sums[part] = (sums[part] ?? 0) + mixed(valueWords, at * valueLength, valueLength, key);
      }
    }
    for (const [part, sum] of sums.entries()) if (sum !== 0) fingerprints.set(fingerprintOf(name, part), String(sum));
  }
  return fingerprints;
}

/** The signs of all parts of a map. Pure. */
export function partsOf(name: WrittenMap): readonly string[] {
  return Array.from({ length: PARTS }, (_, part) => fingerprintOf(name, part));
}

/** Which signs steps can change; undefined: any. Pure. */
export function writtenParts(steps: readonly Step[]): ReadonlySet<string> | undefined {
  if (steps.length > STEPS_MAX) return undefined;
  const parts = new Set<string>();
  for (const { object } of steps) {
    if (!isInMap(object)) continue;
    const map = mapOf(object);
    for (const key of keysOf(object)) parts.add(fingerprintOf(map, partOfKey(map, key)));
  }
  return parts;
}

/** Parts of maps, of each by its name. */
export type MapParts = ReadonlyMap<WrittenMap, ReadonlySet<number> | "all">;

/** Whether a key of a map is in these parts; of `endpoints` a list's name is enough. Pure. */
export function isKeyIn(parts: MapParts, map: WrittenMap, key: Buffer): boolean {
  const some = parts.get(map);
  return some === "all" || (some?.has(partOfKey(map, key)) ?? false);
}

/** Whether an object's elements are in these parts, or some of them. Pure. */
export function isObjectIn(parts: MapParts, object: MapObject): boolean {
  const map = mapOf(object);
  return parts.get(map) === "all" || (parts.has(map) && keysOf(object).some((key) => isKeyIn(parts, map, key)));
}

/** The elements of a map that are in these parts. Pure. */
export function elementsIn(parts: MapParts, map: WrittenMap, all: Elements): Elements {
  if (parts.get(map) === "all") return all;
  const [keyLength, valueLength] = [all.keys.length / all.count, all.values.length / all.count];
  const keys: Buffer[] = [];
  const values: Buffer[] = [];
  for (let at = 0; at < all.count; at += 1) {
    const key = all.keys.subarray(at * keyLength, (at + 1) * keyLength);
    if (!isKeyIn(parts, map, key)) continue;
    keys.push(key);
    values.push(all.values.subarray(at * valueLength, (at + 1) * valueLength));
  }
  return { count: keys.length, keys: Buffer.concat(keys), values: Buffer.concat(values) };
}

/** One key for each part that an object's elements may be in. */
function keysOf(object: MapObject): readonly Buffer[] {
  if (object.kind === "list") return [encodeId(object.key)];
  if (object.kind === "service") return [encodeDestination(object.key)];
  return elementsOf(object).map(({ key }) => key);
}

function partOfKey(map: WrittenMap, key: Buffer): number {
  const words = wordsOf(key);
  return partOf(map, words, 0, words.length);
}

/** The elements of a list are in one part: by the list's name, which a key begins with. */
function partOf(map: WrittenMap, keys: Int32Array, from: number, length: number): number {
  return mixed(keys, from, map === "endpoints" ? STRUCTS.place.fields.list[1] / WORD : length, 1) & (PARTS - 1);
}

/** All structs of the maps are whole words. Seven times as fast to go through as bytes. */
function wordsOf(bytes: Buffer): Int32Array {
  const aligned = bytes.byteOffset % WORD === 0 ? bytes : Uint8Array.from(bytes);
  return new Int32Array(aligned.buffer, aligned.byteOffset, aligned.length / WORD);
}

function fingerprintOf(map: WrittenMap, part: number): string {
  return `content ${map} ${part}`;
}

/** Mix words into a number. No defence against an attacker who looks for two alike: who can write maps can do as he likes. */
function mixed(words: Int32Array, from: number, length: number, start: number): number {
  let hash = start;
  for (let at = from; at < from + length; at += 1) {
    hash = Math.imul(hash ^ (words[at] ?? 0), 0x9e37_79b1);
    hash ^= hash >>> 15;
  }
  return hash;
}
