import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exec, Store } from "@turnout/core";
import iptables from "@turnout/backend-iptables";
import { createExec } from "@turnout/host";
import { cpuTimeMs } from "../cpu-time.ts";
import type { Variant } from "../kube-proxy/tools.ts";
import { runRole } from "../role-process.ts";
import { createStore, createSubjectOf, createView, fillStore } from "../subject.ts";
import type { Subject } from "../subject.ts";
import { sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { firstSync } from "./cold-start.ts";
import type { ColdStart } from "./cold-start.ts";

/** What to measure the iptables backend with. */
export interface IptablesParameters {
  readonly shape: Shape;
  readonly variant: Variant;
  /** Changes of each kind; half of them undo the other half. */
  readonly changes: number;
}

/** What came of it; times in ms. */
export interface IptablesRun {
  readonly cold: Pick<ColdStart, "totalMs" | "cpuMs" | "spentMs" | "objects">;
  /** The same rules given to a bare `iptables-restore` in an empty namespace. */
  readonly reload: Reload;
  /** From the event entering the store to the tool's answer, each after quiet. */
  readonly changeMs: readonly number[];
  /** The same texts, in the same order, given to a bare `iptables-restore --noflush`. */
  readonly bareMs: readonly number[];
  /** Lines the backend gave to the tool for one change, the most there were. */
  readonly lines: number;
}

/** A load by the tool alone; times in ms. */
export interface Reload {
  readonly ms: number;
  readonly cpuMs: number;
}

/** Changes in a row before the tool alone makes the same ones, so that a machine that changes its mind favours neither. */
const BLOCK = 10;
/** A prime, so that changes hit services all over the place. */
const STRIDE = 7919;
const WARM_UP = 10;
const PAUSE_MS = 5;
const SETTLE_MS = 3_000;
const TIMEOUT_MS = 3_600_000;

/** Load everything with our backend here, and with the tool alone elsewhere; then change endpoints, by turns. */
export async function iptablesRun({ shape, variant, changes }: IptablesParameters): Promise<IptablesRun> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  try {
    const store = createStore();
    const inputs: string[] = [];
    const subject = await createSubjectOf(createView(store), iptables, {
      raw: { variant },
      isShared: true,
      watchExec: (exec) => recorded(exec, inputs),
    });
    await fillStore(store, shape);
    const cold = await firstSync(subject);
    const rules = join(directory, "rules");
    await writeFile(rules, (await createExec().run(`iptables-${variant}-save`, [], { timeoutMs: TIMEOUT_MS })).stdout);
    const reload = await runRole<Reload>("iptables-reload", { variant, path: rules });
    await sleep(SETTLE_MS);
    const stop = new AbortController();
    const running = subject.loop.run(stop.signal);
    const changed = await change({ store, subject, shape, variant, changes, inputs, directory });
    stop.abort();
    await running;
    await subject.close();
    return { cold, reload, ...changed };
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Give a file of rules to the tool, in this namespace. */
export async function iptablesReload({ variant, path }: { readonly variant: Variant; readonly path: string }): Promise<Reload> {
  const input = await readFile(path, "utf8");
  const startCpuMs = cpuTimeMs();
  const [ms = 0] = await restored(variant, [], [input]);
  return { ms, cpuMs: cpuTimeMs() - startCpuMs };
}

/** Give texts to the tool one after another, in this namespace, adding to what is there; resolves to the ms each took. */
export async function iptablesBare({ variant, path }: { readonly variant: Variant; readonly path: string }): Promise<readonly number[]> {
  return await restored(variant, ["--noflush"], JSON.parse(await readFile(path, "utf8")) as readonly string[]);
}

async function restored(variant: Variant, args: readonly string[], inputs: readonly string[]): Promise<readonly number[]> {
  const exec = createExec();
  const took: number[] = [];
  for (const input of inputs) {
    const startMs = performance.now();
    const { code, stderr } = await exec.run(`iptables-${variant}-restore`, args, { input, timeoutMs: TIMEOUT_MS });
    took.push(performance.now() - startMs);
    if (code !== 0) throw new Error(`iptables-${variant}-restore refused the text: ${stderr.slice(0, 500)}`);
    await sleep(PAUSE_MS);
  }
  return took;
}

interface Changing {
  readonly store: Store;
  readonly subject: Subject;
  readonly shape: Shape;
  readonly variant: Variant;
  readonly changes: number;
  /** What the backend gave to the tool, as it grows. */
  readonly inputs: string[];
  readonly directory: string;
}

async function change({
  store,
  subject,
  shape,
  variant,
  changes,
  inputs,
  directory,
}: Changing): Promise<Pick<IptablesRun, "changeMs" | "bareMs" | "lines">> {
  const changeMs: number[] = [];
  const bareMs: number[] = [];
  let lines = 0;
  let count = 0;
  const make = async (index: number, missing?: number): Promise<number> => {
    const slice = sliceObject(index, shape, missing === undefined ? {} : { missing });
    const done = subject.nextSync();
    const startMs = performance.now();
    store.upsert("EndpointSlice", slice);
    await done;
    return performance.now() - startMs;
  };
  const block = async (): Promise<readonly number[]> => {
    const took: number[] = [];
    for (let k = 0; k < BLOCK / 2; k++, count++) {
      const index = (count * STRIDE) % shape.services;
      // Taken away and brought back: after a block everything is as it was, and the tool can make the same changes.
      for (const missing of [count % shape.endpoints, undefined]) {
        took.push(await make(index, missing));
        await sleep(PAUSE_MS);
      }
    }
    return took;
  };
  for (let k = 0; k < WARM_UP; k += BLOCK) await block();
  while (changeMs.length < changes) {
    inputs.length = 0;
    changeMs.push(...(await block()));
    if (inputs.length !== BLOCK) throw new Error(`${BLOCK} changes were ${inputs.length} runs of the tool`);
    lines = Math.max(lines, ...inputs.map((text) => text.trimEnd().split("\n").length));
    const path = join(directory, "texts");
    await writeFile(path, JSON.stringify(inputs));
    bareMs.push(...(await runRole<readonly number[]>("iptables-bare", { variant, path }, { namespace: "same" })));
  }
  return { changeMs, bareMs, lines };
}

/** Keep what is given to the tool. */
function recorded(exec: Exec, inputs: string[]): Exec {
  return {
    run: (file, args, options) => {
      if (options?.input !== undefined && file.endsWith("restore")) inputs.push(options.input);
      return exec.run(file, args, options);
    },
    open: (file, args) => exec.open(file, args),
  };
}
