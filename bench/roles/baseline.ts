import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Exec } from "@turnout/core";
import { createExec } from "@turnout/host";
import { cpuTimeMs } from "../cpu-time.ts";
import { layoutChangeText, layoutText } from "../layouts.ts";
import type { Layout } from "../layouts.ts";
import type { Shape } from "../workload.ts";

/** What to load. */
export interface BaselineParameters {
  readonly layout: Layout;
  readonly shape: Shape;
  /** One-endpoint changes after it. */
  readonly changes: number;
}

/** How long nft took, ms; writing the text is not in it. */
export interface Baseline {
  readonly loadMs: number;
  /** CPU time of the load. */
  readonly cpuMs: number;
  readonly changeMs: readonly number[];
}

const LOAD_TIMEOUT_MS = 3_600_000;

/** Load one of kube-proxy's rulesets with `nft -f`, then take endpoints away and bring them back. */
export async function baseline({ layout, shape, changes }: BaselineParameters): Promise<Baseline> {
  const exec = createExec();
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  try {
    const text = layoutText(layout, shape);
    const startCpuMs = cpuTimeMs();
    const loadMs = await loadText(exec, directory, text);
    const cpuMs = cpuTimeMs() - startCpuMs;
    const changeMs: number[] = [];
    for (let k = 0; k < changes; k++) {
      const index = Math.floor((k * shape.services) / changes);
      changeMs.push(await loadText(exec, directory, layoutChangeText(layout, index, shape, k % shape.endpoints)));
    }
    return { loadMs, cpuMs, changeMs };
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function loadText(exec: Exec, directory: string, text: string): Promise<number> {
  const path = join(directory, "rules.nft");
  await writeFile(path, text);
  const startMs = performance.now();
  await loadFile(exec, path);
  return performance.now() - startMs;
}

/** Load a file of nft statements here. @throws {Error} with nft's words when it refuses. */
export async function loadFile(exec: Exec, path: string): Promise<void> {
  const { code, stderr } = await exec.run("nft", ["-f", path], { timeoutMs: LOAD_TIMEOUT_MS });
  if (code !== 0) throw new Error(`nft refused the baseline: ${stderr.slice(0, 500)}`);
}
