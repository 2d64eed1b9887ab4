import { setTimeout as sleep } from "node:timers/promises";
import type { HoldStatus } from "@turnout/lab";

/** IPVS forgets a connection that was reset after 10 s, and Turnout looks every 5 s; the rest is room for a guest on a busy machine. */
const WAIT_MS = 400_000;
/** Each look takes the guest's only CPU from those who are waited for. */
const PAUSE_MS = 500;

/** Wait until something is so, or for too long; tells which. */
export async function isSoonSo(condition: () => Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + WAIT_MS;
  while (performance.now() < untilMs) {
    if (await condition()) return true;
    await sleep(PAUSE_MS);
  }
  return false;
}

/** Wait until a connection has had two answers more than `answers`, or is none any more, or for too long. */
export async function answersAfter(statusOf: () => Promise<HoldStatus>, answers: number): Promise<HoldStatus> {
  await isSoonSo(async () => {
    const status = await statusOf();
    return status.state !== "open" || status.answers > answers + 1;
  });
  return await statusOf();
}
