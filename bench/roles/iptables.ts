import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exec } from "@turnout/core";
import { createLinuxWorld, createWorld } from "@turnout/host";
import { cpuTimeMs } from "../cpu-time.ts";
import type { Harness } from "../line-channel.ts";
import type { Variant } from "../proxies.ts";
import { inFolder } from "../folder.ts";
import { openRole, resultOf, runRole } from "../role-process.ts";
import { createBenchLog } from "../subject.ts";
import type { Shape } from "../workload.ts";
import { changed, firstSync, openFilled, output, PAUSE_MS, STRIDE, whileRunning } from "./backend-run.ts";
import type { FirstSync, Opened } from "./backend-run.ts";

/** What to measure the iptables backend with. */
export interface IptablesParameters {
  readonly shape: Shape;
  readonly variant: Variant;
  /** Changes of each kind; half of them undo the other half. */
  readonly changes: number;
}

/** What came of it; times in ms. */
export interface IptablesRun {
  readonly cold: FirstSync;
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

/** Changes before those that count, of each kind. */
const WARM_UP = 10;
const QUIET_MS = 3_000;
/** The lock of the legacy variant is the machine's, not the namespace's. */
const LOCK_SECONDS = "60";

/** Load everything with our backend here, and with the tool alone elsewhere; then change endpoints, by turns. */
export async function iptablesRun({ shape, variant, changes }: IptablesParameters): Promise<IptablesRun> {
  return await inFolder(async (directory) => {
    const inputs: string[] = [];
    const parameters = { backend: "iptables", shape, raw: { variant } } as const;
    const opened = await openFilled(parameters, { isShared: true, watchExec: (exec) => recorded(exec, inputs) });
    const cold = await firstSync(opened.subject);
    const rules = join(directory, "rules");
    await writeFile(rules, await output(`iptables-${variant}-save`, []));
    const reload = await runRole<Reload>("iptables-reload", { variant, path: rules });
    await sleep(QUIET_MS);
    const turns = await whileRunning(opened.subject, () => change(opened, { shape, variant, changes, inputs, directory }));
    await opened.subject.close();
    return { cold, reload, ...turns };
  });
}

/** Give a file of rules to the tool, in this namespace. */
export async function iptablesReload({ variant, path }: { readonly variant: Variant; readonly path: string }): Promise<Reload> {
  const input = await readFile(path, "utf8");
  await makeCounters(input);
  const startCpuMs = cpuTimeMs();
  const [ms = 0] = await restored(variant, ["-w", LOCK_SECONDS], [input]);
  return { ms, cpuMs: cpuTimeMs() - startCpuMs };
}

/**
 * Give texts to the tool in this namespace, adding to what is there, by turns: at each phase `ready` the file has the next ones, none at the end.
 * Resolves to the ms each took.
 */
export async function iptablesBare(
  { variant, path }: { readonly variant: Variant; readonly path: string },
  harness: Harness,
): Promise<readonly number[]> {
  const took: number[] = [];
  for (;;) {
    await harness.reached("ready");
    const inputs = JSON.parse(await readFile(path, "utf8")) as readonly string[];
    if (inputs.length === 0) return took;
    took.push(...(await restored(variant, ["-w", LOCK_SECONDS, "--noflush"], inputs)));
  }
}

/** Rules that count with nfacct can only be loaded where their counters are. */
async function makeCounters(rules: string): Promise<void> {
  const world = createLinuxWorld(createWorld({ log: createBenchLog() }));
  const names = new Set(Array.from(rules.matchAll(/--nfacct-name +(\S+)/g), ([, name = ""]) => name));
  for (const name of names) await world.netlink.createCounter(name);
  world.close();
}

async function restored(variant: Variant, args: readonly string[], inputs: readonly string[]): Promise<readonly number[]> {
  const took: number[] = [];
  for (const input of inputs) {
    const startMs = performance.now();
    await output(`iptables-${variant}-restore`, args, input);
    took.push(performance.now() - startMs);
    await sleep(PAUSE_MS);
  }
  return took;
}

interface Changing extends IptablesParameters {
  /** What the backend gave to the tool, as it grows. */
  readonly inputs: string[];
  readonly directory: string;
}

async function change(opened: Opened, setting: Changing): Promise<Pick<IptablesRun, "changeMs" | "bareMs" | "lines">> {
  const { shape, variant, changes, inputs, directory } = setting;
  const path = join(directory, "texts");
  const bare = openRole("iptables-bare", { variant, path }, { namespace: "same" });
  const giveTexts = async (texts: readonly string[]): Promise<void> => {
    await writeFile(path, JSON.stringify(texts));
    bare.go();
  };
  try {
    await bare.phase("ready");
    const changeMs: number[] = [];
    let lines = 0;
    for (let turn = 0; turn * 2 < WARM_UP + changes; turn++) {
      inputs.length = 0;
      // Taken away and brought back: after a turn everything is as it was, and the tool can make the same two changes.
      for (const missing of [turn % shape.endpoints, undefined]) {
        changeMs.push(await changed(opened, shape, (turn * STRIDE) % shape.services, missing));
        await sleep(PAUSE_MS);
      }
      if (inputs.length !== 2) throw new Error(`two changes were ${inputs.length} runs of the tool`);
      lines = Math.max(lines, ...inputs.map((text) => text.trimEnd().split("\n").length));
      await giveTexts(inputs);
      await bare.phase("ready");
    }
    await giveTexts([]);
    const bareMs = await resultOf<readonly number[]>(bare);
    return { changeMs: changeMs.slice(WARM_UP), bareMs: bareMs.slice(WARM_UP), lines };
  } finally {
    bare.kill();
  }
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
