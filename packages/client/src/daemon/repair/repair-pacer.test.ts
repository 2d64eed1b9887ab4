import type { LeftObjects } from "@turnout/core";
import { beforeEach, describe, expect, test } from "vitest";
import { flushPromises, ToyClock, ToyLog } from "../../test-support/toys.ts";
import { RepairPacer } from "./repair-pacer.ts";

const MAX_WAIT_MS = 30_000;
let clock: ToyClock;
let log: ToyLog;
let audits: number[];
let stop: AbortController;
let pacer: RepairPacer;
/** A comparison is asked for and not done yet. */
let isAsked: boolean;
/** What was to be put anew, each time. */
let repaired: (readonly string[])[];
let changes: (readonly [who: string, objects: number])[];

beforeEach(() => {
  clock = new ToyClock();
  log = new ToyLog();
  audits = [];
  stop = new AbortController();
  isAsked = false;
  const startMs = clock.nowMs();
  const audit = (): void => {
    isAsked = true;
    audits.push(clock.nowMs() - startMs);
  };
  repaired = [];
  changes = [];
  const fix = (left: LeftObjects): void =>
    void repaired.push(left instanceof Map ? [...(left as ReadonlyMap<string, unknown>).keys()] : []);
  const onChange = (who: string, objects: number): void => void changes.push([who, objects]);
  pacer = new RepairPacer({ family: "IPv4", clock, log, audit, fix, onChange, maxWaitMs: MAX_WAIT_MS, signal: stop.signal });
});

const left = (...ids: readonly string[]): LeftObjects => new Map(ids.map((id) => [id, () => undefined]));

/** The comparison takes its time and is done. */
async function compare(durationMs: number, drifted: number): Promise<void> {
  await clock.advance(durationMs);
  isAsked = false;
  pacer.synced({ full: true, repaired: false, durationMs, drifted, driftedSome: [] });
  await flushPromises();
}

/** Somebody changes something each 100 ms, and a comparison, which mends it, takes `costMs`. */
async function conflict(forMs: number, costMs: number): Promise<void> {
  for (let ms = 0; ms < forMs; ms += 100) {
    pacer.changed({ what: "nft (pid 7)" });
    await clock.advance(100);
    if (isAsked) {
      await compare(costMs, 1);
      ms += costMs;
    }
  }
}

const gaps = (): readonly number[] => audits.slice(1).map((ms, index) => ms - (audits[index] ?? 0));
const warnings = (): readonly string[] => log.lines.filter((line) => line.startsWith("warn"));

describe("somebody's changes", () => {
  test("the first after quiet is repaired at once, whatever repairs cost, and told with what was found", async () => {
    for (let times = 0; times < 5; times += 1) {
      pacer.changed({ what: "nft (pid 7)" });
      await compare(10_000, 3);
      await clock.advance(290_000);
    }
    expect(audits).toEqual([0, 300_000, 600_000, 900_000, 1_200_000]);
    expect(warnings()).toHaveLength(5);
    expect(warnings()[0]).toBe(
      "warn another program changed Turnout's objects; they were repaired family=IPv4 what=nft (pid 7) objects=3 some=",
    );
  });

  test("a suspicion that comes to nothing is no warning", async () => {
    pacer.changed({ what: "portmap (pid 7) changed table ip nat" });
    await compare(20, 0);
    expect(audits).toEqual([0]);
    expect(log.lines).toEqual(["debug nothing of ours was changed family=IPv4 what=portmap (pid 7) changed table ip nat"]);
  });

  test("what was taken for sure is put anew without a comparison, and told by name", async () => {
    pacer.changed({ what: "nft (pid 7)", left: left("chain a", "chain b") });
    expect([audits, repaired]).toEqual([[], [["chain a", "chain b"]]]);
    // Until that is done, what comes is put together; what may be anything makes a comparison of it.
    pacer.changed({ what: "nft (pid 8)", left: left("chain c") });
    pacer.changed({ what: "nft (pid 9)", left: left("chain d") });
    pacer.synced({ full: false, repaired: true, durationMs: 5, drifted: 2, driftedSome: ["chain a", "chain b"] });
    await flushPromises();
    expect(repaired).toEqual([["chain a", "chain b"], ["chain c"], ["chain d"]]);
    pacer.changed({ what: "nft (pid 10)", left: left("chain e") });
    pacer.changed({ what: "nft (pid 11)" });
    pacer.synced({ full: false, repaired: true, durationMs: 5, drifted: 1, driftedSome: ["chain c"] });
    await flushPromises();
    expect([audits, repaired.length]).toEqual([[0], 3]);
    expect(warnings()[0]).toContain("what=nft (pid 7) objects=2 some=chain a, chain b");
    expect(changes).toEqual([
      ["nft (pid 7)", 2],
      ["nft (pid 8)", 1],
    ]);
  });

  test("what took nothing of ours is not waited for", async () => {
    pacer.changed({ what: "nft (pid 7)", left: left() });
    pacer.changed({ what: "nft (pid 8)", left: left("chain a") });
    await flushPromises();
    expect([audits, repaired]).toEqual([[], [["chain a"]]]);
  });

  test("what comes while a comparison is under way is looked at once more, and no more often", async () => {
    for (let times = 0; times < 5; times += 1) pacer.changed({ what: "nft (pid 7)" });
    expect(audits).toEqual([0]);
    await compare(20, 1);
    expect(audits).toEqual([0, 20]);
    await compare(20, 0);
    expect(audits).toEqual([0, 20]);
    expect(warnings()).toHaveLength(1);
  });

  test("syncs that compare nothing end no comparison", async () => {
    pacer.changed({ what: "a" });
    pacer.changed({ what: "b" });
    pacer.synced({ full: false, repaired: false, durationMs: 5, drifted: 0, driftedSome: [] });
    await flushPromises();
    expect(audits).toEqual([0]);
  });

  test("what a comparison finds of itself is told", async () => {
    await compare(20, 1);
    expect(warnings()[0]).toContain("no process was seen");
  });

  test("cheap repairs go on as often as things are changed", async () => {
    await conflict(300_000, 20);
    expect(Math.max(...gaps())).toBeLessThanOrEqual(420);
    expect(audits.length * 20).toBeLessThan(300_000 * 0.1 + 3_000 + 20);
  });

  test("dear ones take a share of the time, and never wait longer than they may", async () => {
    await conflict(600_000, 2_000);
    expect(gaps().slice(0, 2)).toEqual([2_100, expect.any(Number)]);
    expect(audits.length * 2_000).toBeLessThan(600_000 * 0.1 + 3_000 + 2_000);
    audits.length = 0;
    await conflict(600_000, 10_000);
    expect(Math.max(...gaps())).toBeLessThanOrEqual(10_000 + MAX_WAIT_MS + 200);
    expect(audits.length).toBeGreaterThan(600 / 45);
  });

  test("a quarrel is told three times, then each minute with how often, by whom, and what came last", async () => {
    await conflict(180_000, 20);
    const [first, second, third, ...together] = warnings();
    for (const line of [first, second, third]) expect(line).toContain("they were repaired");
    expect(together).toHaveLength(2);
    for (const line of together)
      expect(line).toContain("another program keeps changing Turnout's objects; they are repaired in at most a tenth of the time");
    expect(together[0]).toContain("Is another proxy running");
    expect(together.map((line) => Number(/ times=(\d+) /.exec(line)?.[1])).every((times) => times > 100)).toBe(true);
  });

  describe("acts by hand, one after another and then no more", () => {
    const act = async (pid: number, objects = 1): Promise<void> => {
      pacer.changed({ what: `nft (pid ${pid})` });
      await clock.advance(20);
      pacer.synced({ full: true, repaired: false, durationMs: 20, drifted: objects, driftedSome: [`removed chain ${pid}`] });
      await clock.advance(2_980);
    };
    const TOGETHER =
      "times=4 what=nft (pid 5); nft (pid 6); nft (pid 7); and 1 more objects=13 last=nft (pid 7): removed chain 7 hint=what was not told singly";

    beforeEach(async () => {
      for (let pid = 1; pid <= 6; pid += 1) await act(pid);
      await act(7, 10);
    });

    test("are all told: those after the third within a minute, in one line, although nothing more happens", async () => {
      expect(warnings().map((line) => / some=(.*)$/.exec(line)?.[1])).toEqual(["removed chain 1", "removed chain 2", "removed chain 3"]);
      await clock.advance(48_100);
      expect(warnings()).toHaveLength(4);
      expect(warnings()[3]).toContain(TOGETHER);
      await clock.advance(600_000);
      expect(warnings()).toHaveLength(4);
    });

    test("are told when the proxy ends, if it is before that", async () => {
      stop.abort();
      await flushPromises();
      expect(warnings()).toHaveLength(4);
      expect(warnings()[3]).toContain(TOGETHER);
    });

    test("the next after a quiet minute is told singly", async () => {
      await clock.advance(60_000);
      await act(8);
      expect(warnings()[4]).toContain("some=removed chain 8");
    });
  });

  test("nothing is repaired after the end", async () => {
    await conflict(100_000, 2_000);
    audits.length = 0;
    pacer.changed({ what: "x" });
    stop.abort();
    await flushPromises();
    pacer.changed({ what: "x" });
    await clock.advance(60_000);
    expect(audits).toEqual([]);
  });
});
