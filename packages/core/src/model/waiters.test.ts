import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { Waiters } from "./waiters.ts";

describe("those that wait for one thing", () => {
  it("go on together, and who comes later waits for the next time", async () => {
    const waiters = new Waiters<number>();
    const first = [waiters.wait(), waiters.wait()];
    expect(waiters.size).toBe(2);
    waiters.resolve(1);
    const late = waiters.wait();
    expect([await Promise.all(first), waiters.size]).toEqual([[1, 1], 1]);
    waiters.resolve(2);
    expect(await late).toBe(2);
  });

  it("fail together", async () => {
    const waiters = new Waiters();
    const waits = Promise.allSettled([waiters.wait(), waiters.wait()]);
    waiters.reject(new Error("gone"));
    expect((await waits).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(waiters.size).toBe(0);
  });

  it("go on when they are told to stop, each by itself", async () => {
    const waiters = new Waiters<number>();
    const stop = new AbortController();
    const [stopped, other] = [waiters.wait(stop.signal), waiters.wait()];
    stop.abort();
    expect([await stopped, await waiters.wait(stop.signal), waiters.size]).toEqual([undefined, undefined, 1]);
    waiters.resolve(3);
    expect(await other).toBe(3);
  });

  it("leave no listener behind", async () => {
    const waiters = new Waiters();
    const { signal } = new AbortController();
    const waits = [waiters.wait(signal), waiters.wait(signal)];
    expect(getEventListeners(signal, "abort")).toHaveLength(2);
    waiters.resolve();
    await Promise.all(waits);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
