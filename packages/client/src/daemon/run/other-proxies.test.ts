import { ProxyError, type Leftover } from "@turnout/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ToyClock, ToyLog } from "../../test-support/toys.ts";
import type { Dataplane } from "./leftovers.ts";
import { OtherProxies } from "./other-proxies.ts";

const REPORTED = "warn another service proxy runs on this node: its rules are in force beside ours family=IPv4 what=";

let clock: ToyClock;
let log: ToyLog;
let stop: AbortController;
let looks: number;
let counts: number[];
/** What is there, by the dataplane's name. */
let there: Record<string, readonly Leftover[] | ProxyError>;

beforeEach(() => {
  [clock, log, stop, looks, counts, there] = [new ToyClock(), new ToyLog(), new AbortController(), 0, [], {}];
});

afterEach(() => stop.abort());

const left = (what: string, more: Partial<Leftover> = {}): Leftover => ({
  what,
  remove: () => Promise.reject(new Error("nobody is to fight")),
  ...more,
});

function watch(...staying: readonly string[]): OtherProxies {
  const dataplanes = ["a", "b"].map((name): Dataplane => ({
    name,
    isInUse: false,
    visit: (work) => {
      looks += 1;
      const found = there[name] ?? [];
      return work({ leftovers: () => (found instanceof ProxyError ? Promise.reject(found) : Promise.resolve(found)) });
    },
  }));
  const onPoll = (count: number): void => void counts.push(count);
  const others = new OtherProxies({ family: "IPv4", dataplanes, staying: new Set(staying), firstWaitMs: 1_000, clock, log, onPoll });
  void others.watch(stop.signal, () => undefined);
  return others;
}

const reported = (): readonly string[] =>
  log.lines.filter((line) => line.startsWith(REPORTED)).map((line) => line.slice(REPORTED.length).split(" hint=")[0] ?? "");

test("rules that are there again are told once, also when they were gone meanwhile", async () => {
  const others = watch();
  const seen: unknown[] = [];
  for (const [ms, now] of [
    [1_000, []],
    [2_000, [left("chains")]],
    [4_000, [left("more chains")]],
    [8_000, []],
    [16_000, [left("chains")]],
  ] as const) {
    there["a"] = now;
    await clock.advance(ms);
    seen.push(others.found.map(({ what }) => what).join());
  }
  expect([seen, counts]).toEqual([
    ["", "chains", "more chains", "", "chains"],
    [0, 1, 1, 0, 1],
  ]);
  expect(reported()).toEqual(["chains", "chains"]);
});

test("what stayed at the start counts, and is told of only if it comes anew", async () => {
  watch("a");
  there["a"] = [left("kept")];
  await clock.advance(1_000);
  expect([reported(), counts]).toEqual([[], [1]]);
  there["a"] = [];
  await clock.advance(2_000);
  there["a"] = [left("kept")];
  await clock.advance(4_000);
  expect([reported(), counts]).toEqual([["kept"], [1, 0, 1]]);
});

test("what no packet goes by is nobody's, and a dataplane that can't be seen any more stays as it was", async () => {
  const denied = new ProxyError("permission_denied", "no");
  watch();
  there["a"] = [left("idle", { isLive: false })];
  there["b"] = [left("chains")];
  await clock.advance(1_000);
  there["b"] = denied;
  await clock.advance(2_000);
  there["b"] = [left("hidden", { isLive: false, unseen: denied })];
  await clock.advance(4_000);
  expect([reported(), counts]).toEqual([["chains"], [1, 1, 1]]);
});

test("looking gets rarer, down to once an hour", async () => {
  watch();
  const waits: number[] = [];
  for (let ms = 1_000; waits.length < 15; ms *= 2) {
    const before = looks;
    const waitMs = Math.min(ms, 3_600_000);
    await clock.advance(waitMs - 1);
    expect(looks).toBe(before);
    await clock.advance(1);
    expect(looks).toBe(before + 2);
    waits.push(waitMs);
  }
  expect(waits.slice(-2)).toEqual([3_600_000, 3_600_000]);
});
