import { setTimeout as sleep } from "node:timers/promises";
import ebpf from "@turnout/backend-ebpf";
import iptables from "@turnout/backend-iptables";
import ipvs from "@turnout/backend-ipvs";
import nft from "@turnout/backend-nft";
import type { Store } from "@turnout/core";
import { createExec } from "@turnout/host";
import { cpuTimeMs } from "../cpu-time.ts";
import { runRole } from "../role-process.ts";
import { createStore, createSubjectOf, fillStore } from "../subject.ts";
import type { Subject, SubjectOptions } from "../subject.ts";
import { sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";

/** Backends that are measured in a process of the bench. */
export type BackendName = "ebpf" | "iptables" | "ipvs" | "nft";

/** What to bring in force: everything of a workload, with a backend and its options by name. */
export interface BackendParameters extends Pick<SubjectOptions, "raw"> {
  readonly backend: BackendName;
  readonly shape: Shape;
}

/** What to measure a backend with. */
export interface BackendRunParameters extends BackendParameters {
  /** One endpoint each, taken away or brought back. */
  readonly changes: number;
  /** Quiet time after the cold start, ms. */
  readonly quietMs?: number;
}

/** Everything brought in force in one sync; times in ms. */
export interface FirstSync {
  /** Objects in the store → rules in force: rows, rendering, planning and the backend's tools. */
  readonly totalMs: number;
  /** CPU time of the same, the tools' included. */
  readonly cpuMs: number;
  /** The part in which the host is read. */
  readonly observeMs: number;
  /** Kernel objects in force afterwards. */
  readonly objects: number;
}

/** What came of it; times in ms. */
export interface BackendRun {
  readonly cold: FirstSync;
  /** The first change of the process: tools start, nothing is compiled yet. */
  readonly firstMs: number | undefined;
  readonly changesMs: readonly number[];
  /** CPU time of one change in this process and of tools that have ended, the mean of all. */
  readonly changeCpuMs: number;
}

/** Between the end of one change and the start of the next: the proxy is quiet. */
export const PAUSE_MS = 5;
/** A prime, so that changes hit services all over the place. */
export const STRIDE = 7919;
/** Changes before those that count. */
const WARM_UP = 20;
/** Services that lack an endpoint at any time. */
const OPEN_MAX = 10;
const SETTLE_MS = 4_000;
const LISTING_TIMEOUT_MS = 3_600_000;

const OPEN: Readonly<Record<BackendName, (store: Store, options: SubjectOptions) => Promise<Subject>>> = {
  ebpf: (store, options) => createSubjectOf(store, ebpf, options),
  iptables: (store, options) => createSubjectOf(store, iptables, options),
  ipvs: (store, options) => createSubjectOf(store, ipvs, options),
  nft: (store, options) => createSubjectOf(store, nft, options),
};

/** A proxy in this process before its first sync, with a full store. */
export interface Opened {
  readonly store: Store;
  readonly subject: Subject;
}

/** Open a backend and fill its store. */
export async function openFilled({ backend, shape, raw = {} }: BackendParameters, options: SubjectOptions = {}): Promise<Opened> {
  const store = createStore();
  const subject = await OPEN[backend](store, { raw, ...options });
  await fillStore(store, shape);
  return { store, subject };
}

/** Bring everything in force and say how long it took. */
export async function firstSync({ loop, spent, nextSync }: Subject): Promise<FirstSync> {
  const [startCpuMs, startMs] = [cpuTimeMs(), performance.now()];
  await loop.once(new AbortController().signal);
  const [totalMs, cpuMs] = [performance.now() - startMs, cpuTimeMs() - startCpuMs];
  const { objects } = await nextSync();
  return { totalMs, cpuMs, observeMs: spent.observeMs, objects };
}

/** Have the loop run while something is done. */
export async function whileRunning<T>({ loop }: Subject, work: () => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const running = loop.run(stop.signal);
  try {
    return await work();
  } finally {
    stop.abort();
    await running;
  }
}

/** Make a change to one Service's slice and wait until it is in force; resolves to the ms from the event entering the store. */
export async function changed({ store, subject }: Opened, shape: Shape, index: number, missing?: number): Promise<number> {
  const slice = sliceObject(index, shape, missing === undefined ? {} : { missing });
  const done = subject.nextSync();
  const startMs = performance.now();
  store.upsert("EndpointSlice", slice);
  await done;
  return performance.now() - startMs;
}

/** Load everything, and then change endpoints, one after another, each after quiet. `between` comes after the load. */
export async function backendRun(
  parameters: BackendRunParameters,
  between: () => Promise<void> = () => Promise.resolve(),
): Promise<BackendRun> {
  const { shape, changes, quietMs = 0 } = parameters;
  const opened = await openFilled(parameters);
  const { subject } = opened;
  try {
    const cold = await firstSync(subject);
    await between();
    const all: number[] = [];
    let startCpuMs = cpuTimeMs();
    const changeAll = async (): Promise<void> => {
      const change = createChanger(opened, shape);
      for (let k = 0; k < WARM_UP + changes; k++) {
        if (k === WARM_UP) startCpuMs = cpuTimeMs();
        all.push(await change());
        await sleep(PAUSE_MS);
      }
    };
    if (changes > 0) await sleep(quietMs).then(() => whileRunning(subject, changeAll));
    const changeCpuMs = (cpuTimeMs() - startCpuMs) / Math.max(changes, 1);
    return { cold, firstMs: all[0], changesMs: all.slice(WARM_UP), changeCpuMs };
  } finally {
    // Else a process that failed would go on.
    await subject.close();
  }
}

/** Make a function that makes the next change. Every other change undoes an earlier one. */
function createChanger(opened: Opened, shape: Shape): () => Promise<number> {
  const open: number[] = [];
  let count = 0;
  return async () => {
    const isBack = open.length >= Math.min(OPEN_MAX, shape.services - 1);
    const index = (isBack ? open.shift() : undefined) ?? (count * STRIDE) % shape.services;
    if (!isBack) open.push(index);
    const missing = isBack ? undefined : count % shape.endpoints;
    count++;
    return await changed(opened, shape, index, missing);
  };
}

/** Put right what changes have left otherwise, and go when that has settled: what is replaced is removed later. */
export async function backendRestore(parameters: BackendParameters): Promise<void> {
  const { subject } = await openFilled(parameters);
  await firstSync(subject);
  await whileRunning(subject, () => sleep(SETTLE_MS));
  await subject.close();
}

/** Start a proxy where all is in force already, and see that it writes nothing. */
export async function backendAdopt(parameters: BackendParameters): Promise<FirstSync> {
  const { subject } = await openFilled(parameters);
  const adoption = await firstSync(subject);
  if (subject.spent.hasApplied) throw new Error("a restart changed what was right");
  await subject.close();
  return adoption;
}

/** Start a proxy in one process, then in a second one on the same host; with one listing of all tables by the tool of iptables between. */
export async function backendRestart(parameters: BackendParameters): Promise<FirstSync & { readonly listingMs?: number }> {
  await runRole("backend-run", { ...parameters, changes: 0 }, { namespace: "same" });
  const variant = parameters.raw?.["variant"];
  const startMs = performance.now();
  if (typeof variant === "string") await output(`iptables-${variant}-save`, []);
  const listing = variant === undefined ? {} : { listingMs: performance.now() - startMs };
  return { ...(await runRole<FirstSync>("backend-adopt", parameters, { namespace: "same" })), ...listing };
}

/** What a program prints here. @throws {Error} when it fails, with its words. */
export async function output(file: string, args: readonly string[], input?: string): Promise<string> {
  const options = { timeoutMs: LISTING_TIMEOUT_MS, ...(input === undefined ? {} : { input }) };
  const { code, stdout, stderr } = await createExec().run(file, args, options);
  if (code !== 0) throw new Error(`${file} ${args.join(" ")}: ${stderr.slice(0, 500)}`);
  return stdout;
}
