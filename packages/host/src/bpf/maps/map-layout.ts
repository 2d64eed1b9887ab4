import { ProxyError } from "@turnout/core";
import { MAP_TYPE } from "../constants.ts";
import type { MapInfo } from "../info.ts";
import type { Libbpf, Pointer } from "../libbpf-calls.ts";

/** What two maps must have in common for programs of one to use the other. */
export interface MapLayout {
  /** The kernel's number. */
  readonly type: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly maxEntries: number;
  readonly flags: number;
}

/** Say in what two layouts differ, each as `keySize 8, wanted 12`; undefined: in nothing. Pure. */
export function layoutDifference(has: MapLayout, wanted: MapLayout): string | undefined {
  const parts = ["type", "keySize", "valueSize", "maxEntries", "flags"] as const;
  const differences = parts.flatMap((part) => (has[part] === wanted[part] ? [] : [`${part} ${has[part]}, wanted ${wanted[part]}`]));
  return differences.length === 0 ? undefined : differences.join("; ");
}

/**
 * Refuse a pinned map that isn't as the object wants it: libbpf takes any.
 * @throws {ProxyError} `invalid_object`, which says in what they differ.
 */
export function requireSameLayout(lib: Libbpf, wanted: Pointer, info: MapInfo, pin: string): void {
  const type = info.type in MAP_TYPE ? MAP_TYPE[info.type as keyof typeof MAP_TYPE] : Number(info.type.slice("type ".length));
  const difference = layoutDifference(
    { ...info, type },
    {
      type: lib.mapType(wanted),
      keySize: lib.mapKeySize(wanted),
      valueSize: lib.mapValueSize(wanted),
      maxEntries: lib.mapMaxEntries(wanted),
      flags: lib.mapFlags(wanted),
    },
  );
  if (difference === undefined) return;
  throw new ProxyError("invalid_object", "a pinned map has another layout than the programs", {
    object: `${pin}: ${difference}`,
    hint: "pin the new layout under another path, or remove the old pins",
  });
}
