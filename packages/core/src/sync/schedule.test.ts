import { describe, expect, it } from "vitest";
import { Schedule } from "./schedule.ts";

function schedule(keepsMaxInterval = false): Schedule {
  return new Schedule({ minIntervalMs: 1_000, maxIntervalMs: 60_000, retryMs: 1_500, keepsMaxInterval });
}

describe("when a sync is due", () => {
  it("never, before anything is known; at once when asked for", () => {
    const times = schedule();
    expect([times.dueMs, times.restMs(0), times.isAuditDue(1e9)]).toEqual([Number.POSITIVE_INFINITY, 0, false]);
    times.hurry(5);
    expect(times.dueMs).toBe(5);
    times.idle();
    expect(times.dueMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("after the minimum interval, and once more when everything is to be compared", () => {
    const times = schedule();
    times.began(100, true);
    times.succeeded(150, Number.POSITIVE_INFINITY, 0);
    expect([times.restMs(150), times.restMs(1_149), times.restMs(1_150), times.dueMs]).toEqual([1_000, 1, 0, 60_100]);
    times.began(2_000, false);
    times.succeeded(2_000, 2_500, 0);
    expect([times.dueMs, times.isAuditDue(60_099), times.isAuditDue(60_100)]).toEqual([2_500, false, true]);
  });

  it("to compare everything, so that this takes no more than a two-hundredth of the time", () => {
    const times = schedule();
    times.began(1_000, true);
    times.succeeded(10_000, Number.POSITIVE_INFINITY, 450);
    expect([times.dueMs, times.isAuditDue(90_999), times.isAuditDue(91_000)]).toEqual([91_000, false, true]);
  });

  it("to compare everything after the maximum interval, whatever that takes, where it is to be kept", () => {
    const times = schedule(true);
    times.began(1_000, true);
    times.succeeded(10_000, Number.POSITIVE_INFINITY, 9_000);
    expect([times.dueMs, times.isAuditDue(60_999), times.isAuditDue(61_000)]).toEqual([61_000, false, true]);
  });

  it("at once when it was asked for while one ran", () => {
    const times = schedule();
    times.began(100, true);
    times.hurry(120);
    times.succeeded(150, 9_000, 0);
    expect(times.dueMs).toBe(120);
  });

  it("after waits that double while it fails, and from the start when it has succeeded", () => {
    const times = schedule();
    const fail = (nowMs: number): number => {
      times.began(nowMs, true);
      return times.failed(nowMs);
    };
    expect([fail(0), fail(0), fail(0), fail(0)]).toEqual([250, 500, 1_000, 1_500]);
    expect(times.dueMs).toBe(1_500);
    times.succeeded(0, Number.POSITIVE_INFINITY, 0);
    expect(fail(0)).toBe(250);
  });

  it("at once, without the minimum interval, when the last one was out of time", () => {
    const times = schedule();
    times.began(100, true);
    times.paused(150);
    expect([times.restMs(150), times.dueMs, times.isUnfinished]).toEqual([0, 150, true]);
    times.began(150, false);
    times.succeeded(160, Number.POSITIVE_INFINITY, 0);
    expect([times.restMs(160), times.isUnfinished]).toEqual([1_000, false]);
    times.began(2_000, false);
    times.paused(2_000);
    times.began(2_001, false);
    expect([times.failed(2_001), times.restMs(2_001), times.isUnfinished]).toEqual([250, 1_000, false]);
  });
});
