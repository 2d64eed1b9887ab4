import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { trimMemory } from "./trim-memory.ts";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

/** Buffers of a size that malloc takes from its heap; all but every hundredth go again, so that something stays at the heap's end. */
async function takeAndFree(): Promise<readonly Buffer[]> {
  const all = Array.from({ length: 1_000 }, () => Buffer.alloc(100 * 1_024, 1));
  const kept = all.filter((_, index) => index % 100 === 99);
  all.length = 0;
  gc();
  // V8 frees buffers on another thread.
  await sleep(200);
  return kept;
}

test("what malloc holds free between what is in use goes back to the system", async () => {
  const kept = await takeAndFree();
  const before = process.memoryUsage.rss();
  trimMemory();
  expect(before - process.memoryUsage.rss()).toBeGreaterThan(50e6);
  expect(kept.every((buffer) => buffer[0] === 1)).toBe(true);
});
