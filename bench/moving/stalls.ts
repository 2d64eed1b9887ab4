import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "@turnout/lab";

const EVERY_MS = 250;
/** Half of what a new connection may take: a shorter one makes none fail. */
const STALL_MS = 2_500;

/**
 * Watch the endpoints' processes, each by a question that no proxy is on the way of: one that gets no CPU for seconds makes new connections time out, as if the
 * move had lost them. `stop` gives a line for each that was silent for long.
 */
export function watchStalls(cluster: Cluster, port: number): { stop(): Promise<readonly string[]> } {
  let isRunning = true;
  const watch = async (pod: Cluster["clients"][number]): Promise<readonly string[]> => {
    let longestMs = 0;
    while (isRunning) {
      const startedMs = performance.now();
      await pod.agent().attempt({ address: pod.address("IPv4"), port });
      longestMs = Math.max(longestMs, performance.now() - startedMs);
      await sleep(EVERY_MS);
    }
    return longestMs < STALL_MS
      ? []
      : [`${pod.name} itself was silent for ${(longestMs / 1000).toFixed(1)} s: new connections to it may have timed out for that`];
  };
  // Settled, not all: one that fails must not end the process before stop() is there to throw it.
  const watches = Promise.allSettled(cluster.nodes.flatMap(({ pods }) => pods).map(watch));
  return {
    stop: async () => {
      isRunning = false;
      return (await watches).flatMap((one) => {
        if (one.status === "rejected") throw one.reason;
        return one.value;
      });
    },
  };
}
