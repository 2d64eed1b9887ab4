import type { MetricSet } from "./metric-set.ts";

/** What a process is, for `kubernetes_build_info`. */
export interface BuildInfo {
  /** Turnout's version, e.g. `0.1.0`. */
  readonly version: string;
  /** Node's word for the processor, e.g. `x64`. */
  readonly arch: string;
  /** Node's word for the system, e.g. `linux`. */
  readonly platform: string;
  /** Node's version, e.g. `v24.1.0`. */
  readonly runtime: string;
}

/** One feature gate as it stands. */
export interface FeatureState {
  readonly name: string;
  /** In component-base's words; "" is generally available. */
  readonly stage: "ALPHA" | "BETA" | "" | "DEPRECATED";
  readonly enabled: boolean;
}

/** The labels of `kubernetes_build_info`. */
const BUILD_LABELS = [
  "major",
  "minor",
  "git_version",
  "git_commit",
  "git_tree_state",
  "build_date",
  "go_version",
  "compiler",
  "platform",
] as const;
type BuildLabel = (typeof BUILD_LABELS)[number];
const GO_WORDS: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", win32: "windows" };
const STABILITY = /^\[(ALPHA|BETA|INTERNAL|STABLE)\] /;

/** Say a build in Kubernetes' labels. Pure. Edges: Turnout is not built from a commit into a binary, so those labels are empty. */
export function buildLabels({ version, arch, platform, runtime }: BuildInfo): Readonly<Record<BuildLabel, string>> {
  const [major = "", minor = ""] = version.split(".");
  const word = (name: string): string => GO_WORDS[name] ?? name;
  return {
    major,
    minor,
    git_version: `v${version}`,
    git_commit: "",
    git_tree_state: "",
    build_date: "",
    go_version: runtime,
    compiler: "v8",
    platform: `${word(platform)}/${word(arch)}`,
  };
}

/**
 * Register what component-base's registry serves of every Kubernetes component.
 *
 * Shape: `features` are read at each scrape.
 * @source component-base v0.36.3 metrics/version.go, metrics/prometheus/feature/metrics.go, metrics/registry.go
 */
export function registerComponent(set: MetricSet, build: BuildInfo, features: () => readonly FeatureState[]): void {
  const labels = buildLabels(build);
  set.computed(
    "gauge",
    "kubernetes_build_info",
    "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    BUILD_LABELS,
    () => [[labels, 1]],
  );
  set.computed(
    "gauge",
    "kubernetes_feature_enabled",
    "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
    ["name", "stage"],
    () => features().map(({ name, stage, enabled }) => [{ name, stage }, enabled ? 1 : 0] as const),
  );
  const none = (name: string, help: string): void => set.computed("counter", name, help, [], () => [[{}, 0]]);
  none("hidden_metrics_total", "[BETA] The count of hidden metrics.");
  none("disabled_metrics_total", "[BETA] The count of disabled metrics.");
  set.computed(
    "counter",
    "registered_metrics_total",
    "[BETA] The count of registered metrics broken by stability level and deprecation version.",
    ["stability_level", "deprecated_version"],
    () =>
      [...countByStability(set.helps())].map(([stability_level, count]) => [{ stability_level, deprecated_version: "" }, count] as const),
  );
}

/** Count HELP texts by the stability that they begin with; those without are not Kubernetes' own. Pure. */
export function countByStability(helps: Iterable<string>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const help of helps) {
    const level = STABILITY.exec(help)?.[1];
    if (level !== undefined) counts.set(level, (counts.get(level) ?? 0) + 1);
  }
  return counts;
}
