import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** What a process holds, bytes. */
export interface MemoryInUse {
  /** Objects of JavaScript and what they hold outside its heap, garbage collected. */
  readonly heapBytes: number;
  readonly residentBytes: number;
}

/** Collect garbage and look. */
export async function memoryInUse(): Promise<MemoryInUse> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // Twice, with a turn between: what a finalizer lets go is garbage only then.
  for (let round = 0; round < 2; round++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapBytes: heapUsed + external, residentBytes: rss };
}
