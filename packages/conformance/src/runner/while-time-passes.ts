import { flushPromises } from "@turnout/core/testing";
import type { FakeHost } from "./fake-host.ts";

const STEP_MS = 1_000;
/** Longer than anything in the core waits before it gives up. */
const LONGEST_MS = 60_000;

/** Wait for work that may itself wait for the host's clock. Time stands still where the work needs none. */
export async function whileTimePasses<T>(host: Pick<FakeHost, "advance">, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  work.then(over, over);
  await flushPromises();
  for (let passedMs = 0; !isOver && passedMs < LONGEST_MS; passedMs += STEP_MS) await host.advance(STEP_MS);
  return await work;
}
