/** What Prometheus' text format says of one metric, apart from its values. */
export interface MetricFamily {
  readonly type: string;
  readonly help: string;
  /** Sorted; without `le` and `quantile`, which belong to the type. */
  readonly labels: readonly string[];
}

/** Labels that are part of a type. */
const OF_TYPE: ReadonlySet<string> = new Set(["le", "quantile"]);

/** Read the metrics of a scrape by name. Pure. Edges: a metric without any sample has no labels. */
export function metricFamilies(text: string): ReadonlyMap<string, MetricFamily> {
  const found = new Map<string, { type: string; help: string; labels: string[] }>();
  for (const line of text.split("\n")) {
    const reported = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (reported !== null) {
      const [, what, name = "", value = ""] = reported;
      const family = found.get(name) ?? { type: "", help: "", labels: [] };
      if (what === "TYPE") family.type = value;
      else family.help = value;
      found.set(name, family);
      continue;
    }
    const sample = /^([a-zA-Z0-9_:]+)\{(.*)\} /.exec(line);
    const name = sample?.[1] ?? "";
    const family = found.get(name) ?? found.get(name.replace(/_(bucket|sum|count)$/, ""));
    if (family === undefined) continue;
    const names = [...(sample?.[2] ?? "").matchAll(/([a-zA-Z0-9_]+)="(?:[^"\\]|\\.)*"/g)].map(([, label = ""]) => label);
    family.labels = [...new Set([...family.labels, ...names.filter((label) => !OF_TYPE.has(label))])].toSorted();
  }
  return found;
}
