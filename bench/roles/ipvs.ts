import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import ipvs from "@turnout/backend-ipvs";
import type { Exec, Store } from "@turnout/core";
import { createExec } from "@turnout/host";
import { cpuTimeMs } from "../cpu-time.ts";
import { runRole } from "../role-process.ts";
import { createStore, createSubjectOf, createView, fillStore } from "../subject.ts";
import type { Subject } from "../subject.ts";
import { POD_CIDR, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { firstSync } from "./cold-start.ts";
import type { ColdStart } from "./cold-start.ts";

/** What to measure the ipvs backend with. */
export interface IpvsParameters {
  readonly shape: Shape;
  /** Half of them undo the other half. */
  readonly changes: number;
}

/** What came of it; times in ms. */
export interface IpvsRun {
  readonly cold: Pick<ColdStart, "totalMs" | "cpuMs" | "spentMs" | "objects">;
  /** The same sets and servers given to the tools alone, in an empty namespace. */
  readonly reload: IpvsReload;
  /** CPU time of one change, the tools' included; the mean of all, since the kernel counts tools' time in steps of 10 ms. */
  readonly changeCpuMs: number;
  readonly adoption: IpvsAdoption;
}

/** A load by `ipset restore` and `ipvsadm -R`; times in ms. */
export interface IpvsReload {
  readonly setsMs: number;
  readonly serversMs: number;
}

/** A restart that finds everything as it should be. */
export interface IpvsAdoption {
  readonly totalMs: number;
  readonly objects: number;
}

/** A prime, so that changes hit services all over the place. */
const STRIDE = 7919;
/** Changes before those that count. */
const WARM_UP = 20;
const PAUSE_MS = 5;
const TIMEOUT_MS = 3_600_000;
/** In the guest the other variant can't do anything. */
const RAW = { variant: "legacy" } as const;

/** Load everything with our backend here, and with the tools alone elsewhere; then change endpoints; then start again. In a guest. */
export async function ipvsRun({ shape, changes }: IpvsParameters): Promise<IpvsRun> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const exec = createExec();
  await routeToPods(exec);
  const store = createStore();
  const subject = await createSubjectOf(createView(store), ipvs, { raw: RAW });
  try {
    await fillStore(store, shape);
    const cold = await firstSync(subject);
    for (const [name, file, args] of SAVED) await writeFile(join(directory, name), await output(exec, file, args));
    const reload = await runRole<IpvsReload>("ipvs-reload", directory);
    const changeCpuMs = await cpuOfChange({ store, subject, shape, changes });
    return { cold, reload, changeCpuMs, adoption: await runRole<IpvsAdoption>("ipvs-adopt", shape, { namespace: "same" }) };
  } finally {
    await subject.close();
    await rm(directory, { recursive: true });
  }
}

interface Changing extends IpvsParameters {
  readonly store: Store;
  readonly subject: Subject;
}

/** Take endpoints away and bring them back, each after the one before is in force; resolves to what one change took, in ms. */
async function cpuOfChange({ store, subject, shape, changes }: Changing): Promise<number> {
  const stop = new AbortController();
  const running = subject.loop.run(stop.signal);
  const change = async (index: number, missing: number | undefined): Promise<void> => {
    const synced = subject.nextSync();
    store.upsert("EndpointSlice", sliceObject(index, shape, missing === undefined ? {} : { missing }));
    await synced;
    await sleep(PAUSE_MS);
  };
  try {
    let startCpuMs = 0;
    for (let turn = 0; turn * 2 < WARM_UP + changes; turn++) {
      if (turn * 2 === WARM_UP) startCpuMs = cpuTimeMs();
      const index = (turn * STRIDE) % shape.services;
      await change(index, turn % shape.endpoints);
      await change(index, undefined);
    }
    return (cpuTimeMs() - startCpuMs) / changes;
  } finally {
    stop.abort();
    await running;
  }
}

/** What the tools print, by the name of the file that it goes to. */
const SAVED: readonly (readonly [name: string, file: string, args: readonly string[]])[] = [
  ["sets", "ipset", ["save"]],
  ["servers", "ipvsadm", ["-Sn"]],
];

/** Give what was saved in a directory to the tools, in this namespace. */
export async function ipvsReload(directory: string): Promise<IpvsReload> {
  const exec = createExec();
  await routeToPods(exec);
  const timed = async (command: string): Promise<number> => {
    const startMs = performance.now();
    await output(exec, "sh", ["-c", command]);
    return performance.now() - startMs;
  };
  const setsMs = await timed(`ipset restore <${join(directory, "sets")}`);
  const serversMs = await timed(`ipvsadm -R <${join(directory, "servers")}`);
  // ipvsadm goes on where it is refused something, and ends well. The kernel lists what came last first.
  const sorted = (text: string): string => text.split("\n").toSorted().join("\n");
  const loaded = await output(exec, "ipvsadm", ["-Sn"]);
  if (sorted(loaded) !== sorted(await readFile(join(directory, "servers"), "utf8")))
    throw new Error("ipvsadm -R did not load what ipvsadm -S had saved");
  return { setsMs, serversMs };
}

/** Start a proxy where all is in force already, and see that it writes nothing. */
export async function ipvsAdopt(shape: Shape): Promise<IpvsAdoption> {
  const store = createStore();
  const subject = await createSubjectOf(createView(store), ipvs, { raw: RAW });
  await fillStore(store, shape);
  const { totalMs, spentMs, objects } = await firstSync(subject);
  if ("apply" in spentMs) throw new Error("a restart changed what was right");
  await subject.close();
  return { totalMs, objects };
}

/** IPVS refuses real servers that it knows no way to, and knows none to anybody before loopback is up. */
async function routeToPods(exec: Exec): Promise<void> {
  await output(exec, "sh", [
    "-c",
    `ip link set lo up && ip link add pods type dummy && ip link set pods up && ip route add ${POD_CIDR} dev pods`,
  ]);
}

async function output(exec: Exec, file: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await exec.run(file, args, { timeoutMs: TIMEOUT_MS });
  if (code !== 0) throw new Error(`${file} ${args.join(" ")}: ${stderr.slice(0, 500)}`);
  return stdout;
}
