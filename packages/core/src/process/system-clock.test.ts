import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import { wallMs } from "../contract/world.ts";
import { systemClock } from "./system-clock.ts";

const never = new AbortController().signal;

afterEach(() => void vi.restoreAllMocks());

describe("the system's clock", () => {
  it("wakes a sleeper when its signal aborts, and does not sleep after that", async () => {
    const aborting = new AbortController();
    const sleep = systemClock().sleep(3_600_000, aborting.signal);
    aborting.abort();
    await expect(sleep).resolves.toBeUndefined();
    await expect(systemClock().sleep(3_600_000, aborting.signal)).resolves.toBeUndefined();
  });

  it("does not take a month for a millisecond", async () => {
    const aborting = new AbortController();
    let isAwake = false;
    const sleep = systemClock()
      .sleep(2 ** 32, aborting.signal)
      .then(() => (isAwake = true));
    await systemClock().sleep(20, never);
    expect(isAwake).toBe(false);
    aborting.abort();
    await sleep;
  });

  it("measures by a clock that is never set, and gives times as the wall clock is set now", () => {
    const clock = systemClock();
    const syncedMs = clock.nowMs();
    const bootMs = wallMs(clock, syncedMs);
    expect(wallMs(clock, syncedMs)).toBe(bootMs);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 3_600_000);
    expect(clock.nowMs() - syncedMs).toBeLessThan(60_000);
    expect(wallMs(clock, syncedMs) - bootMs).toBeGreaterThan(3_500_000);
    expect(wallMs(clock)).toBeGreaterThanOrEqual(wallMs(clock, syncedMs));
    expect(wallMs({ nowMs: () => 5 }, 3)).toBe(3);
  });

  it("knows what CPU time the process has taken", () => {
    const total = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1_000;
    const before = total(process.cpuUsage());
    const between = systemClock().cpuMs?.() ?? NaN;
    expect(between).toBeGreaterThanOrEqual(before);
    expect(between).toBeLessThanOrEqual(total(process.cpuUsage()));
  });

  it("leaves no listener at the signal of a sleep that is over", async () => {
    const { signal } = new AbortController();
    await systemClock().sleep(1, signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
