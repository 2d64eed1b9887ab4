import { describe, expect, it } from "vitest";
import { TestClock } from "./clock.ts";

const never = new AbortController().signal;

describe("a clock that stands still", () => {
  it("wakes sleepers in the order of their times, each at its own", async () => {
    const clock = new TestClock(1_000);
    const woken: string[] = [];
    const sleeper = async (name: string, ms: number): Promise<void> => {
      await clock.sleep(ms, never);
      woken.push(`${name} ${clock.nowMs()}`);
    };
    const all = [sleeper("b", 20), sleeper("a", 10), sleeper("c", 20), sleeper("d", 31)];
    await clock.advance(30);
    expect(woken).toEqual(["a 1010", "b 1020", "c 1020"]);
    expect(clock.nowMs()).toBe(1_030);
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    await Promise.all(all);
    expect(woken.at(-1)).toBe("d 1031");
  });

  it("lets what wakes up sleep again within one advance", async () => {
    const clock = new TestClock(0);
    const ticks: number[] = [];
    const loop = async (): Promise<void> => {
      while (ticks.length < 3) {
        await clock.sleep(10, never);
        ticks.push(clock.nowMs());
      }
    };
    const done = loop();
    await clock.advance(100);
    await done;
    expect(ticks).toEqual([10, 20, 30]);
  });

  it("wakes at once on abort", async () => {
    const clock = new TestClock(0);
    const aborting = new AbortController();
    const sleep = clock.sleep(10, aborting.signal);
    aborting.abort();
    await sleep;
    await clock.sleep(10, aborting.signal);
    expect(clock.sleeping).toBe(0);
  });
});
