/** Samples that are served, by their names: `…_bucket` and the like too; with all labels that any sample of the name has. */
export type ServedMetrics = ReadonlyMap<string, ReadonlySet<string>>;

/** Read pages of Prometheus' text format. Comments don't count: what was never sampled is not served. */
export function readServed(pages: readonly string[]): ServedMetrics {
  const served = new Map<string, Set<string>>();
  for (const line of pages.flatMap((page) => page.split("\n"))) {
    const [, name, labels = ""] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === undefined) continue;
    const known = served.get(name) ?? new Set<string>();
    served.set(name, known);
    for (const [, label] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) if (label !== undefined) known.add(label);
  }
  return served;
}
