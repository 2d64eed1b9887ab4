import { canonicalIP } from "@turnout/core";
import type { DataType } from "./data-types.ts";
import type { Element } from "./ruleset.ts";

/** Join intervals that meet or touch, as nft does in sets that a rule writes out; the result is in order and disjoint. */
export function mergeIntervals(elements: readonly Element[], type: DataType): readonly Element[] {
  const ends = elements.flatMap(({ interval }) => (interval === undefined ? [] : [interval]));
  const merged: { from: bigint; to: bigint }[] = [];
  for (const { from, to } of ends.toSorted((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))) {
    const last = merged.at(-1);
    if (last === undefined || from > last.to + 1n) merged.push({ from, to });
    else if (to > last.to) last.to = to;
  }
  return merged.map((interval) => ({ key: `${interval.from}-${interval.to}`, json: intervalJson(interval, type), interval }));
}

/** A single value, a prefix where it is one, or a range. */
function intervalJson({ from, to }: NonNullable<Element["interval"]>, type: DataType): unknown {
  const value = (number: bigint): unknown => type.json(textOf(number, type));
  if (from === to) return value(from);
  const size = to - from + 1n;
  const isPrefix = (size & (size - 1n)) === 0n && from % size === 0n && type.name.endsWith("_addr");
  if (isPrefix) return { prefix: { addr: value(from), len: type.bits - (size.toString(2).length - 1) } };
  return { range: [value(from), value(to)] };
}

function textOf(number: bigint, { name }: DataType): string {
  if (name === "ipv4_addr") return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join(".");
  if (name !== "ipv6_addr") return String(number);
  const groups = Array.from({ length: 8 }, (_, index) => ((number >> BigInt(112 - 16 * index)) & 0xffffn).toString(16));
  return canonicalIP(groups.join(":"))?.text ?? "";
}
