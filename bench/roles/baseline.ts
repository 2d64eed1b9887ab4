import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cpuTimeMs } from "../cpu-time.ts";
import { inFolder } from "../folder.ts";
import { layoutChangeText, layoutText } from "../layouts.ts";
import type { Layout } from "../layouts.ts";
import type { Shape } from "../workload.ts";
import { output } from "./backend-run.ts";

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

/** Load one of kube-proxy's rulesets with `nft -f`, then take endpoints away and bring them back. */
export async function baseline({ layout, shape, changes }: BaselineParameters): Promise<Baseline> {
  return await inFolder(async (folder) => {
    const path = join(folder, "rules.nft");
    const load = async (text: string): Promise<number> => {
      await writeFile(path, text);
      const startMs = performance.now();
      await output("nft", ["-f", path]);
      return performance.now() - startMs;
    };
    const text = layoutText(layout, shape);
    const startCpuMs = cpuTimeMs();
    const loadMs = await load(text);
    const cpuMs = cpuTimeMs() - startCpuMs;
    const changeMs: number[] = [];
    // Without its only endpoint a Service is another case.
    for (let k = 0; k < (shape.endpoints > 1 ? changes : 0); k++) {
      const index = Math.floor((k * shape.services) / changes);
      changeMs.push(await load(layoutChangeText(layout, index, shape, k % shape.endpoints)));
    }
    return { loadMs, cpuMs, changeMs };
  });
}
