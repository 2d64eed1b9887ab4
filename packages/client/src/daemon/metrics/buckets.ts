import { exponentialBuckets } from "prom-client";

/** Bounds of histograms of syncs, in seconds: 1 ms to 16 s. @source kube-proxy pkg/proxy/metrics/metrics.go, buckets E */
export const SYNC_BUCKETS: number[] = exponentialBuckets(0.001, 2, 15);

/** Bounds of the histogram of programming latency, in seconds: 0.25 s to 5 minutes. @source kube-proxy pkg/proxy/metrics/metrics.go, buckets N */
export const PROGRAMMING_BUCKETS: number[] = [0.25, 0.5, ...steps(1, 59, 1), ...steps(60, 115, 5), ...steps(120, 300, 30)];

function steps(from: number, to: number, by: number): number[] {
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, index) => from + index * by);
}
