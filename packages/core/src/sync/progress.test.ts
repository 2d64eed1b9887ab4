import { describe, expect, it } from "vitest";
import { ProxyError } from "../model/errors.ts";
import type { ChangeSet } from "../model/rows.ts";
import { Progress } from "./progress.ts";

type Changes = Pick<ChangeSet, "full" | "set" | "delete" | "triggersMs">;

/** A change set in which these rows go. */
function changes(rows: readonly string[], triggersMs: readonly number[] = [], full: boolean = false): Changes {
  return { full, set: [], delete: rows, triggersMs };
}

describe("what waits", () => {
  it("does so since it came, or since a sync that had no time for all did something", () => {
    const progress = new Progress();
    progress.queued(10, changes([]));
    progress.queued(20, changes([]));
    expect(progress.pendingSinceMs).toBe(10);
    progress.synced(500, []);
    progress.failed(600, new ProxyError("tool_failed", "no"));
    expect(progress.pendingSinceMs).toBe(500);
    progress.synced(700, undefined);
    expect(progress.pendingSinceMs).toBeUndefined();
  });
});

describe("a change set", () => {
  it("is in force when none of its rows waits any more, whatever came later", () => {
    const progress = new Progress();
    progress.queued(10, changes(["a", "b"], [1]));
    progress.queued(20, changes(["c"], [2, 3]));
    progress.queued(30, changes(["a"], [4]));
    expect(progress.synced(100, ["a", "b"])).toEqual({ queuedMs: [20], triggersMs: [2, 3], waitingSinceMs: 10 });
    expect(progress.synced(200, ["b"])).toEqual({ queuedMs: [30], triggersMs: [4], waitingSinceMs: 10 });
    expect(progress.synced(300, [])).toEqual({ queuedMs: [10], triggersMs: [1], waitingSinceMs: undefined });
  });

  it("of everything is in force when its rows and those that are gone are, whatever waits since", () => {
    const progress = new Progress();
    progress.queued(10, changes([], [1], true), ["gone", "kept"]);
    expect(progress.synced(100, ["gone"])).toEqual({ queuedMs: [], triggersMs: [], waitingSinceMs: 10 });
    progress.queued(110, changes(["other"], [2]));
    expect(progress.synced(200, ["other"])).toEqual({ queuedMs: [10], triggersMs: [1], waitingSinceMs: 110 });
  });

  it("is one with those before it where very many wait", () => {
    const progress = new Progress();
    for (let at = 0; at < 1_000; at++) progress.queued(at, changes([`row ${at}`], [at]));
    const settled = progress.synced(2_000, ["row 0", "row 999"]);
    expect(settled.queuedMs).toEqual(Array.from({ length: 98 }, (_, at) => at + 1));
    expect(progress.synced(3_000, undefined).triggersMs).toHaveLength(902);
  });
});

describe("triggers of changes that wait", () => {
  it("are remembered up to ten thousand, the earliest, however many come at once", () => {
    const progress = new Progress();
    progress.queued(0, changes([], [1, 2]));
    progress.queued(
      0,
      changes(
        [],
        Array.from({ length: 300_000 }, (_, index) => index + 3),
      ),
    );
    expect([progress.synced(1, undefined).triggersMs.length, progress.synced(2, undefined).triggersMs]).toEqual([10_000, []]);
    progress.queued(3, changes([], [7]));
    expect(progress.synced(4, undefined).triggersMs).toEqual([7]);
  });
});
