import type { MetricSet } from "./metric-set.ts";

/**
 * Register which parts of the source are followed.
 * @param read what ails the source, by its parts; "" for those that are followed
 */
export function registerSource(set: MetricSet, read: () => Iterable<readonly [part: string, problem: string]>): void {
  set.computed("gauge", "turnout_source_up", "1 while this part of the source is followed", ["part"], () =>
    [...read()].map(([part, problem]) => [{ part }, problem === "" ? 1 : 0] as const),
  );
}
