import type { SeenPart } from "../contract/backend.ts";
import { describe, expect, it } from "vitest";
import { objectId } from "../contract/backend.ts";
import { ProxyError } from "../model/errors.ts";
import type { ChangeSet } from "../model/rows.ts";
import type { TestClock } from "../testing/clock.ts";
import { rawService, rawSlice } from "../testing/objects.ts";
import { createSyncBench, service } from "../test-support/sync-bench.ts";
import { ToyHost } from "../test-support/toy-backend.ts";
import { createStoreView } from "../testing/view.ts";

describe("when syncs happen", () => {
  it("the first change after quiet at once; then the minimum interval; what came meanwhile in one", async () => {
    const bench = await createSyncBench([service(1)], { minIntervalMs: 1000 });
    expect([bench.host.plans, bench.syncTimes()]).toEqual([1, [0]]);
    await bench.clock.advance(5000);
    bench.upsert(service(2));
    await bench.clock.advance(0);
    expect(bench.syncTimes()).toEqual([0, 5000]);
    for (let n = 3; n < 20; n++) bench.upsert(service(n));
    await bench.clock.advance(999);
    expect(bench.syncTimes()).toEqual([0, 5000]);
    await bench.clock.advance(1);
    expect(bench.syncTimes()).toEqual([0, 5000, 6000]);
    expect(bench.host.plans).toBe(3);
    expect(bench.addresses()).toHaveLength(19);
  });

  it("nothing before the node's state is known", async () => {
    const bench = await createSyncBench([service(1)], { isSynced: false });
    await bench.clock.advance(3_600_000);
    expect([bench.host.plans, bench.host.observations, bench.observer.syncs.length]).toEqual([0, 0, 0]);
    bench.markSynced();
    await bench.clock.advance(0);
    expect(bench.addresses()).toEqual(["10.96.0.1"]);
  });

  it("R-58 after the maximum interval everything is compared with the host again", async () => {
    const bench = await createSyncBench([service(1)], { maxIntervalMs: 60_000 });
    bench.host.objects.clear();
    await bench.clock.advance(59_000);
    expect(bench.addresses()).toEqual([]);
    await bench.clock.advance(1000);
    expect(bench.addresses()).toEqual(["10.96.0.1"]);
    expect(bench.observer.syncs.at(-1)).toMatchObject({ full: true, put: 2 });
  });

  it("comparing takes no more than a two-hundredth of the time, however often it is due", async () => {
    class SlowHost extends ToyHost {
      clock: TestClock | undefined;
      override open(): ReturnType<ToyHost["open"]> {
        const inner = super.open();
        const observe: typeof inner.observe = async (signal) => {
          await this.clock?.sleep(3_000, signal);
          return await inner.observe(signal);
        };
        return { ...inner, observe };
      }
    }
    const host = new SlowHost();
    const bench = await createSyncBench([service(1)], { maxIntervalMs: 10_000, host });
    host.clock = bench.clock;
    await bench.clock.advance(10_000 + 3 * 600_000);
    expect(bench.syncTimes()).toEqual([0, 13_000, 613_000, 1_213_000]);
  });

  it("the maximum interval is kept although something changes all the time", async () => {
    const bench = await createSyncBench([service(1)], { maxIntervalMs: 60_000 });
    bench.host.objects.delete("base base");
    for (let n = 2; n < 9; n++) {
      await bench.clock.advance(10_000);
      bench.upsert(service(n));
    }
    await bench.clock.advance(0);
    expect(bench.host.objects.has("base base")).toBe(true);
  });

  it("what a foreign hand did is counted, and nothing else: not what changed meanwhile, not what a failed sync left", async () => {
    const bench = await createSyncBench([service(1), service(2)]);
    const drifts = (): readonly number[] => bench.observer.syncs.splice(0).flatMap(({ full, drifted }) => (full ? [drifted] : []));
    expect(drifts()).toEqual([0]);
    bench.upsert(service(3));
    bench.remove("s1");
    bench.loop.audit();
    await bench.clock.advance(5000);
    expect(drifts()).toEqual([0]);
    bench.host.objects.delete("base base");
    bench.upsert(service(4));
    bench.loop.audit();
    await bench.clock.advance(5000);
    expect(drifts()).toEqual([1]);
    const faults: ("after" | undefined)[] = ["after"];
    bench.host.faults = { apply: () => faults.pop() };
    bench.upsert(service(5));
    await bench.clock.advance(60_000);
    expect(drifts()).toEqual([0]);
  });

  it("what was done is told in the backend's words, and of a part that is gone that it was removed", async () => {
    const host = new ToyHost();
    const open = host.open.bind(host);
    host.open = () => ({
      ...open(),
      describe: ({ key }, held) => ({ what: `the thing ${key}`, ...(held?.value === "half" ? { isGone: true as const } : {}) }),
    });
    const bench = await createSyncBench([service(1)], { host });
    const [taken = "", object] = [...host.objects].find(([id]) => id.includes("10.96.0.1")) ?? [];
    const reported: string[] = [];
    for (const value of ["half", "other", undefined]) {
      bench.observer.syncs.splice(0);
      const left = value === undefined || object === undefined ? undefined : { ...object, value };
      if (left === undefined) host.objects.delete(taken);
      else host.objects.set(taken, left);
      bench.loop.fix(new Map([[taken, () => left]]));
      await bench.clock.advance(5000);
      reported.push(...bench.observer.syncs.flatMap(({ driftedSome }) => driftedSome));
    }
    const thing = `the thing ${object?.key} (shop/s1:http/TCP)`;
    expect(reported).toEqual([`removed ${thing}`, `changed ${thing}`, `removed ${thing}`]);
  });

  it("what somebody was seen to leave is mended without a look, and told", async () => {
    const bench = await createSyncBench([service(1), service(2)]);
    const { objects } = bench.host;
    const found = (): readonly unknown[] =>
      bench.observer.syncs
        .splice(0)
        .map(({ full, repaired, put, drifted, driftedSome }) => ({ full, repaired, put, drifted, driftedSome }));
    found();
    const taken = [...objects.keys()].find((id) => id.includes("10.96.0.1")) ?? "";
    const object = objects.get(taken);
    objects.delete(taken);
    bench.loop.fix(new Map([[taken, () => undefined]]));
    await bench.clock.advance(5000);
    expect(objects.get(taken)).toEqual(object);
    expect(found()).toEqual([{ full: false, repaired: true, put: 1, drifted: 1, driftedSome: [`removed ${taken} (shop/s1:http/TCP)`] }]);
    // One thing after the other; what nobody wants goes again.
    const external = { kind: "service", key: "of nobody", value: 1 };
    objects.set("service of nobody", external);
    bench.loop.fix(new Map([["service of nobody", () => external]]));
    objects.delete(taken);
    bench.loop.fix(new Map([[taken, () => undefined]]));
    await bench.clock.advance(5000);
    expect([objects.has("service of nobody"), objects.has(taken)]).toEqual([false, true]);
    found();
    const all = objects.size;
    objects.clear();
    bench.loop.fix("nothing");
    await bench.clock.advance(5000);
    expect([objects.size, bench.host.observations, found()]).toMatchObject([all, 1, [{ repaired: true, put: all, drifted: all }]]);
    expect(bench.host.violations).toEqual([]);
  });

  it("a part that was seen is believed, unless something was written since", async () => {
    const bench = await createSyncBench([service(1), service(2)]);
    const { objects } = bench.host;
    const taken = [...objects.keys()].find((id) => id.includes("10.96.0.1")) ?? "";
    const part = (isCurrent: boolean): SeenPart => ({
      covers: (object) => objectId(object) === taken || object.kind === "stray",
      objects: new Map([["stray one", { kind: "stray", key: "one", value: 1 }]]),
      isCurrent: () => isCurrent,
    });
    for (const [isCurrent, observations] of [
      [true, 1],
      [false, 2],
    ] as const) {
      objects.delete(taken);
      objects.set("stray one", { kind: "stray", key: "one", value: 1 });
      bench.loop.fix(part(isCurrent));
      await bench.clock.advance(5000);
      expect([objects.has(taken), objects.has("stray one"), bench.host.observations]).toEqual([true, false, observations]);
    }
    expect(bench.host.violations).toEqual([]);
  });

  it("a wrong guess of what was left fails, and is mended by comparing everything", async () => {
    const bench = await createSyncBench([service(1)]);
    const [id = ""] = bench.host.objects.keys();
    const faults: ("before" | undefined)[] = ["before"];
    bench.host.faults = { apply: () => faults.pop() };
    bench.host.objects.delete(id);
    bench.loop.fix(new Map([["service wrong", () => ({ kind: "service", key: "wrong", value: 1 })]]));
    await bench.clock.advance(5000);
    expect([bench.host.objects.has(id), bench.host.observations]).toEqual([true, 2]);
  });

  it("new host facts render everything again, equal ones nothing", async () => {
    const bench = await createSyncBench([service(1)]);
    expect(bench.loop.setHost({ generation: 2 })).toBe(true);
    await bench.clock.advance(5000);
    expect(bench.host.objects.get("base base")?.value).toEqual({ bit: 14, generation: 2 });
    expect(bench.host.plans).toBe(2);
    const syncs = bench.observer.syncs.length;
    expect(bench.loop.setHost({ generation: 2 })).toBe(false);
    await bench.clock.advance(5000);
    expect([bench.host.plans, bench.observer.syncs.length]).toEqual([2, syncs]);
  });
});

describe("R-58 a host that already holds something", () => {
  it("what a former process left is adopted: only the difference is applied", async () => {
    const former = await createSyncBench([service(1), service(2)]);
    await former.stop();
    const bench = await createSyncBench([service(2), service(3)], { host: former.host });
    expect(bench.addresses()).toEqual(["10.96.0.2", "10.96.0.3"]);
    expect(bench.observer.syncs).toMatchObject([{ put: 1, removed: 1, full: true }]);
  });
});

describe("what lingers", () => {
  it("is visited again when the backend asks for it, until it is gone", async () => {
    const bench = await createSyncBench([service(1), service(2)]);
    bench.host.faults = { lingersMs: 3000 };
    bench.remove("s1");
    await bench.clock.advance(1000);
    const plans = bench.host.plans;
    await bench.clock.advance(2000);
    expect(bench.host.plans).toBe(plans + 1);
    await bench.clock.advance(60_000);
    expect(bench.host.plans).toBe(plans + 1);
  });
});

describe("a one-time sync and what lingers", () => {
  const unwanted = { kind: "destination", key: "10.96.0.9:80 TCP", value: "left by another run" };

  it.each([
    ["stays until it is gone", 3_000, false],
    ["does not stay for what takes long", 60_000, true],
  ])("%s", async (_name, lingersMs, isLeft) => {
    const host = new ToyHost();
    host.objects.set(objectId(unwanted), unwanted);
    const bench = await createSyncBench([service(1)], { host, isIdle: true, faults: { lingersMs } });
    let isDone = false;
    const { signal } = new AbortController();
    await bench.loop.once(signal);
    const done = bench.loop.finish(signal).then(() => (isDone = true));
    await bench.clock.advance(1_000);
    expect(isDone).toBe(isLeft);
    await bench.clock.advance(lingersMs);
    await done;
    expect(host.plans).toBe(isLeft ? 1 : 2);
    expect(bench.addresses()).toEqual(["10.96.0.1"]);
  });

  it("is over when it is told to stop", async () => {
    const host = new ToyHost();
    host.objects.set(objectId(unwanted), unwanted);
    const bench = await createSyncBench([service(1)], { host, isIdle: true, faults: { lingersMs: 3_000 } });
    const stop = new AbortController();
    await bench.loop.once(stop.signal);
    const done = bench.loop.finish(stop.signal);
    await bench.clock.advance(1_000);
    stop.abort();
    await expect(done).rejects.toSatisfy((error) => ProxyError.is(error, "canceled"));
    expect(bench.host.plans).toBe(1);
  });
});

describe("connections to forget", () => {
  const dns = (ips: readonly string[]): ReturnType<typeof rawSlice> =>
    rawSlice(
      "dns",
      ips.map((ip) => ({ ip })),
      { ports: [{ name: "dns", port: 53, protocol: "UDP" }] },
    );
  const dnsService = rawService("dns", { clusterIP: "10.96.0.10", ports: [{ name: "dns", port: 53, protocol: "UDP" }] });

  it("after the sync that makes them stale, beside it; a failure does not fail the sync", async () => {
    const bench = await createSyncBench([dnsService, dns(["10.1.1.1", "10.1.1.2"])]);
    expect(bench.host.forgotten.flat()).toMatchObject([{ address: "10.96.0.10", keep: ["10.1.1.1:53", "10.1.1.2:53"] }]);
    bench.host.faults = { forget: () => true };
    bench.upsert(dns(["10.1.1.2"]));
    await bench.clock.advance(5000);
    expect(bench.observer.failures).toEqual([]);
    expect(bench.log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
  });

  it("what could not be forgotten is tried again with the next sync", async () => {
    const bench = await createSyncBench([dnsService, dns(["10.1.1.1", "10.1.1.2"])]);
    bench.host.faults = { forget: () => true };
    bench.upsert(dns(["10.1.1.2"]));
    await bench.clock.advance(5000);
    bench.host.faults = {};
    bench.upsert(service(1));
    await bench.clock.advance(5000);
    expect(bench.host.forgotten.at(-1)).toMatchObject([{ address: "10.96.0.10", keep: ["10.1.1.2:53"] }]);
  });

  it("R-42 never flows that a change may let in, by what the rows were before it", async () => {
    const signals: AbortSignal[] = [];
    const forgetting = (signal: AbortSignal): Promise<void> => {
      signals.push(signal);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    };
    // The Service comes before its endpoints, as it does: whoever talks to it then is to be forgotten.
    const bench = await createSyncBench([dnsService], { faults: { forgetting } });
    const stoppedAtApply: boolean[] = [];
    const apply = (): undefined => void stoppedAtApply.push(signals[0]?.aborted === true);
    bench.host.faults = { forgetting, apply };
    bench.upsert(service(1));
    await bench.clock.advance(1000);
    bench.host.faults = { apply };
    bench.upsert(dns(["10.1.1.1"]));
    await bench.clock.advance(1000);
    expect(stoppedAtApply).toEqual([false, true]);
    expect(bench.host.forgotten).toMatchObject([[{ address: "10.96.0.10", keep: ["10.1.1.1:53"] }]]);
    expect(bench.log.lines.filter(({ level }) => level === "warn")).toEqual([]);
  });

  it("not while the change is not in force", async () => {
    const bench = await createSyncBench([dnsService, dns(["10.1.1.1", "10.1.1.2"])]);
    const before = bench.host.forgotten.length;
    bench.host.faults = { apply: () => "before" };
    bench.upsert(dns(["10.1.1.2"]));
    await bench.clock.advance(5000);
    expect(bench.host.forgotten).toHaveLength(before);
    bench.host.faults = {};
    await bench.clock.advance(60_000);
    expect(bench.host.forgotten.at(-1)).toMatchObject([{ keep: ["10.1.1.2:53"] }]);
  });
});

describe("the feed is lost", () => {
  it("rules stay, it is asked again, and what it then says is applied", async () => {
    const bench = await createSyncBench([service(1)], { scripted: true, retryMs: 30_000 });
    const first = createStoreView([service(1)]).pull() as ChangeSet;
    bench.feed.push(first);
    await bench.clock.advance(1000);
    bench.feed.push(new ProxyError("feed_lost", "the node-state server is away"));
    await bench.clock.advance(1000);
    expect(bench.addresses()).toEqual(["10.96.0.1"]);
    const { asked } = bench.feed;
    await bench.clock.advance(29_000);
    expect(bench.feed.asked).toBe(asked + 1);
    bench.feed.push({ ...(createStoreView([service(2)]).pull() as ChangeSet), instance: "other" });
    await bench.clock.advance(1000);
    expect(bench.addresses()).toEqual(["10.96.0.2"]);
    expect(bench.observer.failures).toEqual([]);
  });

  it("drift is mended meanwhile", async () => {
    const bench = await createSyncBench([], { scripted: true, retryMs: 30_000 });
    bench.feed.push(createStoreView([service(1)]).pull() as ChangeSet);
    await bench.clock.advance(1000);
    bench.feed.push(new ProxyError("feed_lost", "the node-state server is away"));
    await bench.clock.advance(1000);
    bench.host.objects.clear();
    bench.loop.audit();
    await bench.clock.advance(1000);
    expect(bench.addresses()).toEqual(["10.96.0.1"]);
  });
});

describe("stopping", () => {
  it("ends run at once, also while connections are forgotten", async () => {
    const forgetting = (signal: AbortSignal): Promise<void> =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    const dns = rawService("dns", { clusterIP: "10.96.0.10", ports: [{ name: "dns", port: 53, protocol: "UDP" }] });
    const bench = await createSyncBench([dns], { faults: { forgetting } });
    await bench.stop();
    expect([bench.host.forgotten, bench.log.lines.filter(({ level }) => level === "warn")]).toEqual([[], []]);
  });

  it("ends run at once, whatever it waits for", async () => {
    const idle = await createSyncBench([service(1)]);
    await idle.stop();
    const resting = await createSyncBench([service(1)], { minIntervalMs: 1000 });
    resting.upsert(service(2));
    await resting.stop();
    expect(resting.addresses()).toEqual(["10.96.0.1"]);
    const failing = await createSyncBench([service(1)], { faults: { apply: () => "before" } });
    await failing.stop();
    expect(failing.observer.failures.length).toBeGreaterThan(0);
    await (await createSyncBench([service(1)], { isSynced: false })).stop();
  });
});
