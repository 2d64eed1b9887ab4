import { TestClock } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { whileTimePasses } from "./while-time-passes.ts";

const never = new AbortController().signal;

describe("while work is waited for", () => {
  it("time goes on as far as the work needs it", async () => {
    const clock = new TestClock(0);
    expect(
      await whileTimePasses(
        clock,
        clock.sleep(2_500, never).then(() => "done"),
      ),
    ).toBe("done");
    expect(clock.nowMs()).toBe(3_000);
  });

  it("time stands still where the work needs none, also when it fails", async () => {
    const clock = new TestClock(0);
    await expect(whileTimePasses(clock, Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(clock.nowMs()).toBe(0);
  });
});
