import type { FuzzTarget } from "@turnout/house/fuzz";
import { STRUCTS } from "../bytes/layout.ts";
import type { WrittenMap } from "../bytes/elements.ts";
import { readLook } from "../observe.ts";

/** What values without a meaning of their own have, and flags. */
const WORD_BYTES = 4;
/** Bytes of each map's keys and values. */
const SIZES: Readonly<Record<WrittenMap, readonly [key: number, value: number]>> = {
  services: [STRUCTS.destination.bytes, STRUCTS.service.bytes],
  endpoints: [STRUCTS.place.bytes, STRUCTS.endpoint.bytes],
  counters: [8, STRUCTS.counters.bytes],
  source_ranges: [STRUCTS.source_range.bytes, WORD_BYTES],
  node_addresses: [16, WORD_BYTES],
  pod_ranges: [STRUCTS.pod_range.bytes, WORD_BYTES],
  primaries: [16, 16],
  opted_out: [8, WORD_BYTES],
  settings: [WORD_BYTES, STRUCTS.settings.bytes],
};
const MAPS = Object.keys(SIZES) as readonly WrittenMap[];

/** Elements one after the other: the number of the map, its key, its value. An unfinished last one is left out. */
function readMaps(input: Buffer): void {
  const elements = new Map(MAPS.map((map) => [map, [] as { count: number; keys: Buffer; values: Buffer }[]]));
  for (let at = 0; at < input.length;) {
    const map = MAPS[(input[at] ?? 0) % MAPS.length] ?? "services";
    const [key, value] = SIZES[map];
    const [keys, values] = [input.subarray(at + 1, at + 1 + key), input.subarray(at + 1 + key, at + 1 + key + value)];
    if (values.length === value) elements.get(map)?.push({ count: 1, keys, values });
    at += 1 + key + value;
  }
  const rest = { links: new Map(), filters: new Map(), table: undefined, filled: [], serving: [], folders: [] };
  for (const family of ["IPv4", "IPv6"] as const) readLook({ elements, ...rest }, { family, isKeeper: family === "IPv4" });
}

/** What reads our maps, as somebody else may have written them. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [{ name: "ebpf-maps", form: "bytes", run: readMaps }];
