import { ProxyError } from "@turnout/core";
import { flushPromises, TestClock } from "@turnout/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { FingerprintWatch } from "./fingerprint-watch.ts";

let clock: TestClock;
let host: Map<string, string>;
let looks: number;
/** What a look takes, in ms. */
let costMs: number;
let failure: ProxyError | undefined;
let look: () => ReadonlyMap<string, string>;
let watch: FingerprintWatch;
let stop: AbortController;

beforeEach(() => {
  clock = new TestClock(0);
  host = new Map([["nat", "3 rules"]]);
  [looks, costMs, failure] = [0, 0, undefined];
  let spentMs = 0;
  stop = new AbortController();
  look = (): ReadonlyMap<string, string> => {
    looks += 1;
    spentMs += costMs;
    if (failure !== undefined) throw failure;
    return new Map(host);
  };
  watch = new FingerprintWatch({ clock: { nowMs: () => clock.nowMs() + spentMs, sleep: (ms, signal) => clock.sleep(ms, signal) }, look });
});

/** What is told, `name: before > now`. */
function follow(signal = stop.signal): string[] {
  const reported: string[] = [];
  const run = async (): Promise<void> => {
    try {
      for await (const changes of watch.follow(signal))
        reported.push(...Array.from(changes, ([name, { before, now }]) => `${name}: ${before} > ${now}`));
    } catch (error) {
      reported.push(String(error));
    }
  };
  void run();
  return reported;
}

describe("watching signs", () => {
  it("tells everybody who follows of others' changes within two tenths of a second, and of nothing else", async () => {
    const [reported, other] = [follow(), follow()];
    await clock.advance(1_000);
    host.set("nat", "2 rules");
    host.set("filter", "1 rule");
    await clock.advance(200);
    expect([reported, other]).toEqual([
      ["nat: 3 rules > 2 rules", "filter: undefined > 1 rule"],
      ["nat: 3 rules > 2 rules", "filter: undefined > 1 rule"],
    ]);
  });

  it("tells of what came right before a write of ours, and not of the write", async () => {
    const reported = follow();
    await clock.advance(50);
    const isUntouched = watch.sinceNow();
    host.set("filter", "1 rule");
    await watch.during(async () => {
      await clock.advance(300);
      host.set("nat", "4 rules");
    });
    await clock.advance(1_000);
    expect(reported).toEqual(["filter: undefined > 1 rule"]);
    expect([isUntouched(), watch.sinceNow()()]).toEqual([false, true]);
  });

  it("looks less often where a look is dear, and not at all when nobody follows", async () => {
    await clock.advance(1_000);
    expect(looks).toBe(0);
    const first = new AbortController();
    follow(first.signal);
    follow();
    first.abort();
    await clock.advance(10_000);
    expect(looks).toBe(101);
    costMs = 10;
    await clock.advance(100_000);
    expect(looks).toBeLessThan(101 + 100);
    stop.abort();
    await flushPromises();
    expect(clock.sleeping).toBe(0);
  });

  it("looks no less often on a busy machine, where a look takes long and little CPU time", async () => {
    costMs = 100;
    let cpuMs = 0;
    const busy = { nowMs: () => clock.nowMs(), sleep: (ms: number, signal: AbortSignal) => clock.sleep(ms, signal), cpuMs: () => cpuMs };
    const slowly = async (): Promise<ReadonlyMap<string, string>> => {
      await clock.sleep(costMs, stop.signal);
      cpuMs += 0.1;
      return look();
    };
    watch = new FingerprintWatch({ clock: busy, look: slowly });
    follow();
    await clock.advance(10_000);
    expect(looks).toBeGreaterThan(45);
  });

  it("looks often again soon after the process was busy, which makes looks seem dear", async () => {
    let cpuMs = 0;
    const busy = { nowMs: () => clock.nowMs(), sleep: (ms: number, signal: AbortSignal) => clock.sleep(ms, signal), cpuMs: () => cpuMs };
    const slowly = (): ReadonlyMap<string, string> => {
      cpuMs += clock.nowMs() < 1_000 ? 300 : 0.1;
      return look();
    };
    watch = new FingerprintWatch({ clock: busy, look: slowly });
    follow();
    await clock.advance(3_000);
    looks = 0;
    await clock.advance(2_000);
    expect(looks).toBeGreaterThan(15);
  });

  it("where a look is dear, says nothing of what a write of ours concerns, unless others have changed something else", async () => {
    watch = new FingerprintWatch({ clock, look, isExpensive: true });
    const reported = follow();
    await clock.advance(1_000);
    await watch.during(() => Promise.resolve(host.set("nat", "4 rules")), ["nat"]);
    await clock.advance(1_000);
    expect(reported).toEqual([]);
    await watch.during(() => Promise.resolve(host.set("nat", "5 rules")), ["nat"]);
    host.delete("nat");
    host.set("filter", "1 rule");
    await clock.advance(1_000);
    expect(reported).toEqual(["nat: 4 rules > undefined", "filter: undefined > 1 rule"]);
    host.set("nat", "1 rule");
    await clock.advance(1_000);
    expect(reported.slice(2)).toEqual(["nat: undefined > 1 rule"]);
  });

  it("where a look is dear takes none around a write of ours, and what it sees next for ours", async () => {
    watch = new FingerprintWatch({ clock, look, isExpensive: true });
    const reported = follow();
    await clock.advance(3_500);
    const before = looks;
    await watch.during(() => Promise.resolve(host.set("nat", "4 rules")));
    expect(looks).toBe(before);
    await clock.advance(3_000);
    expect(reported).toEqual([]);
    host.set("nat", "5 rules");
    await clock.advance(1_000);
    expect(reported).toEqual(["nat: 4 rules > 5 rules"]);
  });

  it("fails where looking does, and begins anew", async () => {
    const reported = follow();
    failure = new ProxyError("permission_denied", "nobody may look");
    await clock.advance(100);
    failure = undefined;
    expect(reported).toEqual([expect.stringContaining("nobody may look")]);
    const again = follow();
    await flushPromises();
    host.set("nat", "1 rule");
    await clock.advance(100);
    expect(again).toEqual(["nat: 3 rules > 1 rule"]);
  });
});
