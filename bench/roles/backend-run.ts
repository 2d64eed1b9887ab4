import { setTimeout as sleep } from "node:timers/promises";
import ebpf from "@turnout/backend-ebpf";
import nft from "@turnout/backend-nft";
import type { Store } from "@turnout/core";
import { cpuTimeMs } from "../cpu-time.ts";
import { createStore, createSubjectOf, createView, fillStore } from "../subject.ts";
import type { Subject } from "../subject.ts";
import type { Shape } from "../workload.ts";
import { createChanger, PAUSE_MS, WARM_UP } from "./changes.ts";
import { firstSync } from "./cold-start.ts";
import type { ColdStart } from "./cold-start.ts";

/** Backends that are compared in one place of the laboratory. */
export type ComparedBackend = "ebpf" | "nft";

/** What to bring in force, and where from. */
export interface BackendParameters {
  readonly backend: ComparedBackend;
  readonly shape: Shape;
}

/** What to measure a backend with. */
export interface BackendRunParameters extends BackendParameters {
  readonly changes: number;
  /** Quiet time after the cold start, ms. */
  readonly quietMs: number;
}

/** What came of it; times in ms. */
export interface BackendRun {
  readonly cold: Pick<ColdStart, "totalMs" | "cpuMs" | "spentMs" | "objects">;
  readonly changesMs: readonly number[];
  /** CPU time of one change in this process, the mean of all; what tools take that go on running is not in. */
  readonly changeCpuMs: number;
}

/** A restart that finds everything as it should be; times in ms. */
export interface BackendAdoption {
  readonly totalMs: number;
  readonly observeMs: number;
  readonly objects: number;
}

const SETTLE_MS = 4_000;

/** Load everything, and then change endpoints, one after another. */
export async function backendRun({ backend, shape, changes, quietMs }: BackendRunParameters): Promise<BackendRun> {
  const { store, subject } = await openFilled({ backend, shape });
  const cold = await firstSync(subject);
  await sleep(quietMs);
  const stop = new AbortController();
  const running = subject.loop.run(stop.signal);
  const change = createChanger(store, subject, shape);
  const changesMs: number[] = [];
  let startCpuMs = 0;
  for (let k = 0; k < WARM_UP + changes; k++) {
    if (k === WARM_UP) startCpuMs = cpuTimeMs();
    const tookMs = await change();
    if (k >= WARM_UP) changesMs.push(tookMs);
    await sleep(PAUSE_MS);
  }
  const changeCpuMs = (cpuTimeMs() - startCpuMs) / changes;
  stop.abort();
  await running;
  await subject.close();
  return { cold, changesMs, changeCpuMs };
}

/** Put right what changes have left otherwise, and go when that has settled: what is replaced is removed later. */
export async function backendRestore(parameters: BackendParameters): Promise<void> {
  const { subject } = await openFilled(parameters);
  await firstSync(subject);
  const stop = new AbortController();
  const running = subject.loop.run(stop.signal);
  await sleep(SETTLE_MS);
  stop.abort();
  await running;
  await subject.close();
}

/** Start a proxy where all is in force already, and see that it writes nothing. */
export async function backendAdopt(parameters: BackendParameters): Promise<BackendAdoption> {
  const { subject } = await openFilled(parameters);
  const { totalMs, spentMs, objects } = await firstSync(subject);
  if ("apply" in spentMs) throw new Error("a restart changed what was right");
  await subject.close();
  return { totalMs, observeMs: spentMs["observe"] ?? 0, objects };
}

async function openFilled({ backend, shape }: BackendParameters): Promise<{ readonly store: Store; readonly subject: Subject }> {
  const store = createStore();
  const subject = await OPEN[backend](store);
  await fillStore(store, shape);
  return { store, subject };
}

const OPEN: Readonly<Record<ComparedBackend, (store: Store) => Promise<Subject>>> = {
  ebpf: (store) => createSubjectOf(createView(store), ebpf),
  nft: (store) => createSubjectOf(createView(store), nft),
};
