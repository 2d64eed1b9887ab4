import { loadavg } from "node:os";
import { cpuTimeMs } from "../cpu-time.ts";
import { createStore, createSubject, createView, fillStore } from "../subject.ts";
import type { Subject } from "../subject.ts";
import type { Shape } from "../workload.ts";

/** One cold start, times in ms. */
export interface ColdStart {
  /** Objects in the store → rules in force: rows, rendering, planning and nft. */
  readonly totalMs: number;
  /** CPU time of the same, nft's included. */
  readonly cpuMs: number;
  /** Filling the store, not part of `totalMs`. */
  readonly storeMs: number;
  /** Parts of `totalMs` by the backend's method; the rest is rows, rendering and the ledger. */
  readonly spentMs: Readonly<Record<string, number>>;
  /** Kernel objects in force afterwards. */
  readonly objects: number;
  /** Load average of the last minute before. */
  readonly load: number;
}

/** Start a proxy on a full store and an empty host. */
export async function coldStart(shape: Shape): Promise<ColdStart> {
  const [load = 0] = loadavg();
  const store = createStore();
  const subject = await createSubject(createView(store));
  const filledMs = performance.now();
  await fillStore(store, shape);
  const storeMs = performance.now() - filledMs;
  const result = await firstSync(subject);
  await subject.close();
  return { ...result, storeMs, load };
}

/** Bring everything in force and say how long it took. */
export async function firstSync(subject: Subject): Promise<Pick<ColdStart, "totalMs" | "cpuMs" | "spentMs" | "objects">> {
  const startCpuMs = cpuTimeMs();
  const startMs = performance.now();
  await subject.loop.once(new AbortController().signal);
  const totalMs = performance.now() - startMs;
  const cpuMs = cpuTimeMs() - startCpuMs;
  const { objects } = await subject.nextSync();
  return { totalMs, cpuMs, spentMs: { ...subject.spentMs }, objects };
}
