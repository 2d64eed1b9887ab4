import { describe, expect, it } from "vitest";
import { ProxyError } from "../model/errors.ts";
import { Progress } from "./progress.ts";

describe("what waits", () => {
  it("does so since it came, or since a sync that had no time for all did something", () => {
    const progress = new Progress();
    progress.queued(10, []);
    progress.queued(20, []);
    expect(progress.pendingSinceMs).toBe(10);
    progress.paused(500);
    progress.failed(600, new ProxyError("tool_failed", "no"));
    expect(progress.pendingSinceMs).toBe(500);
    progress.succeeded(700);
    expect(progress.pendingSinceMs).toBeUndefined();
  });
});

describe("triggers of changes that wait", () => {
  it("are remembered up to ten thousand, the earliest, however many come at once", () => {
    const progress = new Progress();
    progress.queued(0, [1, 2]);
    progress.queued(
      0,
      Array.from({ length: 300_000 }, (_, index) => index + 3),
    );
    expect([progress.succeeded(1).length, progress.succeeded(2)]).toEqual([10_000, []]);
    progress.queued(3, [7]);
    expect(progress.succeeded(4)).toEqual([7]);
  });
});
