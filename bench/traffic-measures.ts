/** A measure of traffic, and how tables print it. */
export interface TrafficMeasure {
  /** Its name in samples. */
  readonly measure: "connects" | "requests" | "bulk" | "connected" | "unconnected";
  /** What the name of its target ends in. */
  readonly suffix: "" | " UDP";
  readonly rateText: (perSecond: number) => string;
  /** Of the CPU time of one, in µs; of bulk of a MB. */
  readonly cpuText: (us: number) => string;
}

const thousands = (rate: number): string => `${(rate / 1000).toFixed(1)}k/s`;
const micros = (us: number): string => `${us.toFixed(1)} µs`;

/** In the order of tables' columns. */
export const TRAFFIC_MEASURES: readonly TrafficMeasure[] = [
  { measure: "connects", suffix: "", rateText: thousands, cpuText: micros },
  { measure: "requests", suffix: "", rateText: thousands, cpuText: micros },
  {
    measure: "bulk",
    suffix: "",
    rateText: (rate) => `${(rate / 1e9).toFixed(2)} GB/s`,
    cpuText: (us) => `${Math.round(us * 1e6)} µs`,
  },
  { measure: "connected", suffix: " UDP", rateText: thousands, cpuText: micros },
  { measure: "unconnected", suffix: " UDP", rateText: thousands, cpuText: micros },
];
