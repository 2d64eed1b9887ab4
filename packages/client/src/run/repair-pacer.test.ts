import { beforeEach, describe, expect, test } from "vitest";
import { settled, ToyClock, ToyLog } from "../testing/toys.ts";
import { RepairPacer } from "./repair-pacer.ts";

let clock: ToyClock;
let log: ToyLog;
let audits: number[];
let pacer: RepairPacer;
const stop = new AbortController();

beforeEach(() => {
  clock = new ToyClock();
  log = new ToyLog();
  audits = [];
  const startMs = clock.nowMs();
  pacer = new RepairPacer({ family: "IPv4", clock, log, audit: () => audits.push(clock.nowMs() - startMs), maxWaitMs: 30_000 });
});

/** Somebody changes something every 100 ms. */
async function quarrel(forMs: number): Promise<void> {
  for (let ms = 0; ms < forMs; ms += 100) {
    void pacer.changed("nft (pid 7)", stop.signal);
    await clock.advance(100);
  }
}

describe("somebody's changes", () => {
  test("single ones are repaired at once, each with a line", async () => {
    for (let minute = 0; minute < 5; minute += 1) {
      await pacer.changed("nft (pid 7)", stop.signal);
      await clock.advance(120_000);
    }
    expect(audits).toEqual([0, 120_000, 240_000, 360_000, 480_000]);
    expect(log.lines).toHaveLength(5);
    expect(log.lines[0]).toBe("warn somebody changed what is ours, comparing everything with the host family=IPv4 what=nft (pid 7)");
  });

  test("many notifications of one change are one line, and all are looked at", async () => {
    await pacer.changed("nft (pid 7)", stop.signal);
    await pacer.changed("nft (pid 7)", stop.signal);
    await pacer.changed("nft (pid 7)", stop.signal);
    expect(audits).toEqual([0, 0, 0]);
    expect(log.lines).toHaveLength(1);
  });

  test("a quarrel is repaired less and less often, up to the longest wait, and told each minute", async () => {
    await quarrel(180_000);
    expect(audits.slice(0, 9)).toEqual([0, 100, 200, 1_200, 3_200, 7_200, 15_200, 31_200, 61_200]);
    expect(audits.length).toBeLessThan(14);
    expect(log.lines).toHaveLength(6);
    expect(log.lines.slice(3).every((line) => line.includes("somebody keeps changing"))).toBe(true);
    expect(log.lines[3]).toContain("somebody keeps changing what is ours");
    expect(log.lines[3]).toContain("is another proxy running");
  });

  test("after a quarrel has ended the next change is repaired at once again", async () => {
    await quarrel(20_000);
    // The repair that was still to come, and then peace.
    await clock.advance(15_000);
    await clock.advance(185_000);
    audits.length = 0;
    await pacer.changed("nft (pid 8)", stop.signal);
    expect(audits).toEqual([220_000]);
  });

  test("nothing is repaired after the end", async () => {
    const end = new AbortController();
    for (let n = 0; n < 3; n += 1) {
      await pacer.changed("x", end.signal);
      await clock.advance(100);
    }
    audits.length = 0;
    const waiting = pacer.changed("x", end.signal);
    end.abort();
    await waiting;
    await settled();
    expect(audits).toEqual([]);
  });
});
