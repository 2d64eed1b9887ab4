import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { LoadData } from "./load.ts";

/** What a client saw. */
export interface LoadResult {
  readonly failures: readonly string[];
  readonly connections: number;
  readonly datagrams: number;
  /** How often an endpoint showed itself in the place of its service. */
  readonly shown: number;
}

/** Have a thread connect to one service and send datagrams to another one, until what this gives is called. It has begun when this resolves. */
export async function startLoad(tcp: string, udp: string): Promise<() => Promise<LoadResult>> {
  const shared = new Int32Array(new SharedArrayBuffer(16));
  const workerData: LoadData = { tcp, udp, shared };
  const worker = new Worker(new URL("load.ts", import.meta.url), { workerData });
  // An error of the thread ends this one.
  while (Atomics.load(shared, 2) < 10) await sleep(10);
  return async (): Promise<LoadResult> => {
    const reported = once(worker, "message");
    Atomics.store(shared, 0, 1);
    const [failures] = (await reported) as [readonly string[]];
    await worker.terminate();
    return { failures, connections: Atomics.load(shared, 1), datagrams: Atomics.load(shared, 2), shown: Atomics.load(shared, 3) };
  };
}
