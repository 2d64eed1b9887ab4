import { typedTexts, type RawFlags } from "./config-flags.ts";
import { INTEGER, switchOf } from "./config-kinds.ts";
import { invalid, textFlag } from "./loaded-config.ts";

/** What a running proxy tells of itself besides what kube-proxy does. */
export interface InsightSettings {
  /** How many Service ports are told with what was counted for each; 0: nothing is counted. */
  readonly serviceMetricsMax: number;
  /** Whether the metrics server has a page for people. */
  readonly hasWebPage: boolean;
}

/** Each Service port has up to seven series, and Prometheus keeps every one that it has seen. */
const SERVICE_METRICS_MAX = 10_000;

/** Read `service-metrics` and `web-page`. @throws {ProxyError} `invalid_object` naming the flag. */
export function insightSettings(flags: RawFlags): InsightSettings {
  return {
    serviceMetricsMax: serviceMetricsMax(flags),
    hasWebPage: switchOf("--web-page", typedTexts(flags, "web-page").at(-1)),
  };
}

function serviceMetricsMax(flags: RawFlags): number {
  const text = textFlag(flags, "service-metrics");
  if (text === undefined) return 0;
  const value = INTEGER.fromFlag(text);
  if (value < 0 || value > SERVICE_METRICS_MAX) throw invalid("--service-metrics", `${text} must be 0 to ${SERVICE_METRICS_MAX}`);
  return value;
}
