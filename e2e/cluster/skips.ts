import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** Tests that a run leaves out. */
export interface Skip {
  /** A regular expression over the names of tests. */
  readonly match: string;
  readonly reason: string;
  /** The last day (YYYY-MM-DD) on which the entry holds: then somebody has to look again, and until then the tests run. */
  readonly until: string;
}

/** What of sig-network no run plays, with any proxy: `skips.yaml`. */
export const SKIPS = parse(readFileSync(new URL("skips.yaml", import.meta.url), "utf8")) as readonly Skip[];

/** Entries that hold on a day (YYYY-MM-DD), and those that no longer do. Pure. */
export function sortSkips(skips: readonly Skip[], today: string): { readonly valid: readonly Skip[]; readonly expired: readonly Skip[] } {
  return { valid: skips.filter(({ until }) => today <= until), expired: skips.filter(({ until }) => today > until) };
}
