import type { Clock } from "@turnout/core";
import type { ProcessMemory } from "./process-memory.ts";

/** What follows the first sync, such as a look for former proxies, has ended by then. */
const START_MS = 3_000;
/** Between two looks, and how long nothing may have been synced: whoever waits for a sync does not wait for garbage to be collected. */
const QUIET_MS = 5_000;
/** Less is not worth a collection. */
const GROWN_BYTES = 16e6;

/**
 * Give memory back some seconds after the start, and again whenever much work is over.
 *
 * Shape: `lastSyncMs` is when something was last brought into force, on the clock.
 * Edges: V8 has no reason to collect garbage in a process that idles, so what work took of memory would stay. A process that is never quiet
 * allocates, and V8 collects. Ends when `signal` aborts.
 */
export async function keepMemorySmall(
  memory: ProcessMemory,
  { clock, lastSyncMs }: { readonly clock: Clock; readonly lastSyncMs: () => number },
  signal: AbortSignal,
): Promise<void> {
  await clock.sleep(START_MS, signal);
  if (signal.aborted) return;
  let keptBytes = givenBack(memory);
  for (;;) {
    await clock.sleep(QUIET_MS, signal);
    if (signal.aborted) return;
    const isQuiet = clock.nowMs() - lastSyncMs() >= QUIET_MS;
    if (isQuiet && memory.residentBytes() - keptBytes >= GROWN_BYTES) keptBytes = givenBack(memory);
  }
}

/** Give memory back; returns what is resident then. */
function givenBack(memory: ProcessMemory): number {
  memory.giveBack();
  return memory.residentBytes();
}
