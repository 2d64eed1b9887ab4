import { CELL_FORMATS } from "./case-table.ts";
import type { CellFormat } from "./case-table.ts";
import { ratioText } from "./number-text.ts";
import type { TrafficSample, TrafficSamples } from "./roles/traffic.ts";
import { median, percentile } from "./statistics.ts";
import type { TrafficMeasureName } from "@turnout/lab";
import type { TargetName } from "./traffic-targets.ts";

/** How tables print a rate, and the CPU time of one, in µs; of bulk of a MB. */
const TEXTS: Readonly<Record<TrafficMeasureName, readonly [rate: CellFormat, cpu: CellFormat]>> = {
  connects: ["krate", "cpu"],
  requests: ["krate", "cpu"],
  bulk: ["gbps", "mbCpu"],
  packets: ["krate", "cpu"],
};

/** Whether a client measured this of a target. */
export function hasMeasured(samples: TrafficSamples, target: TargetName, measure: TrafficMeasureName | "connect"): boolean {
  return measure === "connect" ? samples.connectMs[target] !== undefined : samples.rates[target]?.[measure] !== undefined;
}

/** The median of what one measure came to for a target, over all rounds. @throws {RangeError} when it was not measured. */
export function medianOf(
  samples: TrafficSamples,
  target: TargetName,
  measure: TrafficMeasureName,
  of: keyof TrafficSample = "perSecond",
): number {
  return median((samples.rates[target]?.[measure] ?? []).map((sample) => sample[of]));
}

/** A cell: rate and CPU time, or p50 / p99 of single connects; in brackets the ratios to another client's. Empty when it was not measured. */
export function cellText(
  samples: TrafficSamples,
  target: TargetName,
  measure: TrafficMeasureName | "connect",
  comparedWith?: TrafficSamples,
): string {
  if (!hasMeasured(samples, target, measure)) return "";
  const other = comparedWith !== undefined && hasMeasured(comparedWith, target, measure) ? comparedWith : undefined;
  if (measure === "connect") {
    const times = samples.connectMs[target] ?? [];
    const micros = (ms: number): number => Math.round(ms * 1000);
    const ratios = other === undefined ? [] : [median(times) / median(other.connectMs[target] ?? [])];
    return `${micros(median(times))} / ${micros(percentile(times, 0.99))} µs${ratiosText(ratios)}`;
  }
  const of = (some: TrafficSamples, what: keyof TrafficSample): number => medianOf(some, target, measure, what);
  const ratios = other === undefined ? [] : (["perSecond", "cpuUs"] as const).map((what) => of(samples, what) / of(other, what));
  const [rate, cpu] = TEXTS[measure];
  return `${CELL_FORMATS[rate](of(samples, "perSecond"))}, ${CELL_FORMATS[cpu](of(samples, "cpuUs"))}${ratiosText(ratios)}`;
}

function ratiosText(ratios: readonly number[]): string {
  return ratios.length === 0 ? "" : ` (${ratios.map(ratioText).join(", ")})`;
}
