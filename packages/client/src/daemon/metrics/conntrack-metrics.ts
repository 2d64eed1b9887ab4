import { readFileSync } from "node:fs";
import type { MetricSet } from "./metric-set.ts";

/** Gives a file's text, or undefined where there is none. */
export type ReadText = (path: string) => string | undefined;

const STAT = "/proc/net/stat/nf_conntrack";
const MAX = "/proc/sys/net/netfilter/nf_conntrack_max";

/** What the kernel counts, by the names of its columns. */
const COUNTED: readonly (readonly [column: string, name: string, help: string])[] = [
  ["invalid", "invalid_total", "Packets that belong to no connection, e.g. out of the window of TCP"],
  ["insert_failed", "insert_failed_total", "Connections that were not recorded, mostly since two packets of one raced"],
  ["drop", "dropped_total", "Packets that were dropped since conntrack was full or out of memory"],
  ["early_drop", "early_dropped_total", "Connections that were forgotten to make room for others"],
];

/**
 * Register what conntrack of this network namespace counts: connections of all kinds, not only those through Services.
 *
 * Edges: without conntrack in the kernel, or without /proc, nothing is told.
 * @source Linux net/netfilter/nf_conntrack_standalone.c ct_cpu_seq_show
 */
export function registerConntrack(set: MetricSet, read: ReadText = readIfThere): void {
  const computed = (type: "gauge" | "counter", name: string, help: string, value: () => number | undefined): void =>
    set.computed(type, `turnout_conntrack_${name}`, help, [], () => {
      const now = value();
      return now === undefined ? [] : [[{}, now]];
    });
  const columns = (): ReadonlyMap<string, readonly number[]> => readColumns(read(STAT) ?? "");
  // Each CPU's line says how many entries there are in all.
  computed("gauge", "entries", "Connections that conntrack holds", () => columns().get("entries")?.[0]);
  computed("gauge", "max_entries", "Connections that conntrack may hold", () => numberIn(read(MAX)));
  for (const [column, name, help] of COUNTED)
    computed("counter", name, help, () =>
      columns()
        .get(column)
        ?.reduce((sum, ofCPU) => sum + ofCPU),
    );
}

/** Read a line of names, and behind it a line of hexadecimal numbers for each CPU. Pure; a file without such lines has no columns. */
export function readColumns(text: string): ReadonlyMap<string, readonly number[]> {
  const [names = [], ...lines] = text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim().split(/\s+/)]));
  if (lines.length === 0) return new Map();
  return new Map(names.map((name, index) => [name, lines.map((line) => Number.parseInt(line[index] ?? "0", 16))]));
}

function numberIn(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text.trim());
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    // No conntrack, another system, or a container that hides it: then there is nothing to tell.
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
