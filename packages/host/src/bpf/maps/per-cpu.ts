import { invariant } from "@turnout/core";
import type { MapInfo } from "../info.ts";

/** Tell whether each CPU has its own value for a key of such a map. */
export function isPerCpu(type: MapInfo["type"]): boolean {
  return type === "per-cpu-hash" || type === "per-cpu-array" || type === "lru-per-cpu-hash";
}

/** How many bytes an element's value has outside the kernel: of a per-CPU map one value for each CPU that there may ever be, each padded to 8 bytes. */
export function valueBytes(map: Pick<MapInfo, "type" | "valueSize">, possibleCpus: number): number {
  return isPerCpu(map.type) ? padded(map.valueSize) * possibleCpus : map.valueSize;
}

/** The values of the CPUs in an element's value, as views. */
export function perCpuValues(value: Buffer, valueSize: number): readonly Buffer[] {
  const step = padded(valueSize);
  return Array.from({ length: value.length / step }, (_, cpu) => value.subarray(cpu * step, cpu * step + valueSize));
}

/**
 * Add up counters of 8 bytes that each CPU has for itself.
 *
 * Shape: `value` is one element's; the counter lies `offset` bytes from the beginning of each CPU's part.
 * Edges: counters are read one after another while programs go on, so the sum is one that was true for each CPU at some moment.
 */
export function sumCounter(value: Buffer, valueSize: number, offset = 0): bigint {
  invariant(offset + 8 <= valueSize, "a counter of 8 bytes lies in the value");
  return perCpuValues(value, valueSize).reduce((sum, one) => sum + one.readBigUInt64LE(offset), 0n);
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}
