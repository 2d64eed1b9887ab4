import { describe, expect, it } from "vitest";
import { ProxyError } from "../model/errors.ts";
import type { TestClock } from "../testing/clock.ts";
import { rawService, rawSlice } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { createSyncBench, service, services } from "../test-support/sync-bench.ts";
import type { SyncBench } from "../test-support/sync-bench.ts";
import { ToyHost } from "../test-support/toy-backend.ts";

const MANY = 40;

/** A Service of UDP with one endpoint. */
function dns(n: number, ip: string): readonly RawObject[] {
  const ports = [{ name: "dns", port: 53, protocol: "UDP" }];
  return [service(n, { ports }), rawSlice(`s${n}`, [{ ip }], { ports })];
}

/** Addresses whose flows were forgotten, in that order. */
function forgottenBy({ host }: SyncBench): readonly string[] {
  return host.forgotten.flat().map(({ address }) => address);
}

/** One after the other, how many objects each sync had no time for. */
function deferredOf({ observer }: SyncBench): readonly number[] {
  return observer.syncs.map(({ deferred }) => deferred);
}

describe("a host that can do so much in a turn", () => {
  it("ends where one ends that can do all at once", async () => {
    const slow = await createSyncBench(services(MANY), { faults: { stepsPerTurn: 7 }, minIntervalMs: 1_000 });
    await slow.clock.advance(100);
    const quick = await createSyncBench(services(MANY));
    expect([...slow.host.objects.keys()].toSorted()).toEqual([...quick.host.objects.keys()].toSorted());
    // 40 and the base, no minimum interval between them.
    expect(deferredOf(slow)).toEqual([34, 27, 20, 13, 6, 0]);
    expect(slow.syncTimes().at(-1)).toBeLessThan(100);
  });

  it("does not keep a newer change waiting for all that it still has to do", async () => {
    const bench = await createSyncBench(services(MANY), { faults: { stepsPerTurn: 5 } });
    bench.upsert(service(99));
    await bench.clock.advance(2);
    expect(bench.addresses()).toContain("10.96.0.99");
    expect(bench.addresses().length).toBeLessThan(MANY / 2);
    await bench.clock.advance(100);
    expect(bench.addresses()).toHaveLength(MANY + 1);
  });

  it("is not asked for what nobody wants any more by then", async () => {
    const bench = await createSyncBench(services(10), { faults: { stepsPerTurn: 3 } });
    for (let n = 1; n <= 10; n++) bench.remove(`s${n}`);
    await bench.clock.advance(100);
    expect([bench.addresses(), bench.host.plans]).toEqual([[], 2]);
  });

  it("is told how long a turn is", async () => {
    const bench = await createSyncBench([service(1)]);
    const short = await createSyncBench([service(1)], { turnMs: 20 });
    expect([bench.host.turnsMs, short.host.turnsMs]).toEqual([[1_000], [20]]);
  });

  it("counts as waiting until all is in force, and triggers are told only then", async () => {
    const bench = await createSyncBench([service(1), rawSlice("s1", [{ ip: "10.1.0.1" }])]);
    await bench.clock.advance(1_000);
    bench.host.faults = { stepsPerTurn: 1 };
    const triggered = new Date(bench.clock.nowMs() - 5).toISOString();
    bench.upsert(rawSlice("s1", [{ ip: "10.1.0.1" }, { ip: "10.1.0.2" }], { triggered }));
    await bench.clock.advance(0);
    const changedMs = bench.clock.nowMs();
    expect([bench.loop.pendingSinceMs, bench.loop.lastSuccessMs, deferredOf(bench)]).toEqual([changedMs, changedMs - 1_000, [0, 2]]);
    await bench.clock.advance(10);
    expect([bench.loop.pendingSinceMs, bench.loop.lastSuccessMs, deferredOf(bench)]).toEqual([undefined, changedMs + 2, [0, 2, 1, 0]]);
    expect(bench.observer.syncs.map(({ triggersMs }) => triggersMs)).toEqual([[], [], [], [Date.parse(triggered)]]);
  });

  it("has the flows of a row forgotten when all of the row is in force, and of others before", async () => {
    const bench = await createSyncBench([...dns(1, "10.1.0.1"), ...dns(2, "10.1.0.2")]);
    await bench.clock.advance(10);
    bench.host.forgotten.length = 0;
    bench.host.faults = { stepsPerTurn: 1 };
    bench.upsert(dns(1, "10.1.0.8")[1] as RawObject);
    bench.upsert(dns(2, "10.1.0.9")[1] as RawObject);
    await bench.clock.advance(0);
    expect(forgottenBy(bench)).toEqual(["10.96.0.1"]);
    await bench.clock.advance(10);
    expect(forgottenBy(bench)).toEqual(["10.96.0.1", "10.96.0.2"]);
  });

  it("has no flows judged by a row of before as long as its new form waits for a turn", async () => {
    const bench = await createSyncBench([...dns(1, "10.1.0.1"), ...dns(2, "10.1.0.2")]);
    await bench.clock.advance(10);
    bench.host.forgotten.length = 0;
    const untilStopped = (signal: AbortSignal): Promise<void> =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new ProxyError("canceled", "stopped"))));
    bench.host.faults = { forgetting: untilStopped };
    bench.upsert(dns(1, "10.1.0.7")[1] as RawObject);
    await bench.clock.advance(0);
    bench.host.faults = { stepsPerTurn: 1 };
    bench.upsert(dns(2, "10.1.0.9")[1] as RawObject);
    bench.upsert(dns(1, "10.1.0.8")[1] as RawObject);
    await bench.clock.advance(0);
    expect([deferredOf(bench).at(-1), forgottenBy(bench)]).toEqual([1, ["10.96.0.2"]]);
    await bench.clock.advance(10);
    expect(bench.host.forgotten.flat().map(({ address, keep }) => [address, keep])).toEqual([
      ["10.96.0.2", ["10.1.0.9:53"]],
      ["10.96.0.1", ["10.1.0.8:53"]],
    ]);
  });

  it("that tries nothing at all has failed, and is tried again after a while", async () => {
    const bench = await createSyncBench(services(3), { faults: { stepsPerTurn: 0 } });
    expect(ProxyError.is(bench.loop.lastError, "timed_out")).toBe(true);
    expect(bench.loop.lastError?.message).toContain("deferred everything");
    const { plans } = bench.host;
    await bench.clock.advance(200);
    expect(bench.host.plans).toBe(plans);
    bench.host.faults = {};
    await bench.clock.advance(60_000);
    expect([bench.addresses().length, bench.loop.lastError]).toEqual([3, undefined]);
  });

  it("finishes what lingers, whatever else it has to do", async () => {
    const bench = await createSyncBench(services(6));
    bench.host.faults = { lingersMs: 100, stepsPerTurn: 1 };
    for (let n = 1; n <= 6; n++) bench.remove(`s${n}`);
    await bench.clock.advance(1_000);
    expect([bench.addresses(), bench.observer.syncs.at(-1)?.deferred]).toEqual([[], 0]);
    expect((await bench.host.open().observe(new AbortController().signal))?.lingering).toEqual([]);
  });

  it("and refuses a row, has all others in force", async () => {
    const bench = await createSyncBench(services(9), {
      faults: { stepsPerTurn: 2, refuses: ({ key }) => key.startsWith("10.96.0.5:") },
    });
    await bench.clock.advance(100);
    expect(bench.addresses()).toHaveLength(8);
    expect(bench.addresses()).not.toContain("10.96.0.5");
    bench.host.faults = { stepsPerTurn: 2 };
    await bench.clock.advance(60_000);
    expect(bench.addresses()).toHaveLength(9);
  });

  it("is given as many turns as it takes by a one-time sync", async () => {
    const bench = await createSyncBench(services(9), { isIdle: true, faults: { stepsPerTurn: 2 } });
    await bench.loop.once(new AbortController().signal);
    expect([bench.addresses().length, bench.loop.pendingSinceMs]).toEqual([9, undefined]);
  });
});

/** A host on which each step of a plan takes so long, in ms. */
class SlowHost extends ToyHost {
  clock: TestClock | undefined;
  readonly #perStepMs: number;

  constructor(perStepMs: number) {
    super();
    this.#perStepMs = perStepMs;
  }

  override open(): ReturnType<ToyHost["open"]> {
    const inner = super.open();
    const apply: typeof inner.apply = async (plan, signal, turn) => {
      await this.clock?.sleep(plan.steps.length * this.#perStepMs, signal);
      return await inner.apply(plan, signal, turn);
    };
    return { ...inner, apply };
  }
}

/** Service number n of another namespace, with one of its forms. */
function flooding(n: number, form: number): RawObject {
  const spec = { clusterIP: `10.97.${n >> 8}.${n & 255}`, sessionAffinity: form % 2 === 0 ? "None" : "ClientIP" };
  return rawService(`e${n}`, spec, { namespace: "evil" });
}

describe("a namespace in which much changes", () => {
  const FLOOD = 400;
  const flood = (bench: SyncBench, form: number): void => {
    for (let n = 0; n < FLOOD; n++) bench.upsert(flooding(n, form));
  };

  /** A bench with 400 Services of one namespace in force, on a host that takes 5 ms for each object. */
  async function createFlooded(): Promise<SyncBench> {
    const host = new SlowHost(5);
    const bench = await createSyncBench([service(1), ...Array.from({ length: FLOOD }, (_, n) => flooding(n, 0))], { host });
    host.clock = bench.clock;
    return bench;
  }

  it("delays another one's change by two turns of 100 ms at most, however much waits", async () => {
    const bench = await createFlooded();
    flood(bench, 1);
    // How much a turn can do is known after the first one.
    await bench.clock.advance(1_000);
    for (let n = 2; n < 20; n++) {
      bench.upsert(service(n));
      await bench.clock.advance(205);
      expect(bench.addresses()).toContain(`10.96.0.${n}`);
      // It never ends: what has changed changes again.
      if (n % 4 === 0) flood(bench, n / 4);
    }
    expect(bench.observer.syncs.at(-1)?.waitingSinceMs).toBeDefined();
    await bench.clock.advance(60_000);
    expect(bench.loop.waitingRows).toEqual([]);
    expect(bench.observer.syncs.at(-1)?.waitingSinceMs).toBeUndefined();
  });

  it("has another one's change reported when it is in force, and its own when they are", async () => {
    const bench = await createFlooded();
    flood(bench, 1);
    await bench.clock.advance(0);
    const [floodMs, victimMs] = [bench.clock.nowMs(), bench.clock.nowMs() + 1_000];
    await bench.clock.advance(1_000);
    bench.observer.syncs.length = 0;
    bench.upsert(service(2));
    await bench.clock.advance(205);
    expect(bench.observer.syncs.flatMap(({ queuedMs }) => queuedMs)).toHaveLength(1);
    expect(bench.observer.syncs.at(-1)?.waitingSinceMs).toBe(floodMs);
    expect(bench.loop.waitingRows.length).toBeGreaterThan(FLOOD / 4);
    expect(bench.loop.pendingSinceMs).toBeGreaterThan(victimMs);
    await bench.clock.advance(60_000);
    expect(bench.observer.syncs.flatMap(({ queuedMs }) => queuedMs)).toHaveLength(2);
  });

  it("has a row that the host refuses blamed, and no row of another's that waits for its turn", async () => {
    const bench = await createFlooded();
    bench.host.faults = { refuses: ({ key }) => key.startsWith("10.97.0.7:") };
    flood(bench, 1);
    bench.upsert(service(2));
    await bench.clock.advance(60_000);
    expect(bench.observer.quarantines.at(-1)).toEqual(["evil/e7:http/TCP"]);
    expect(bench.addresses()).toContain("10.96.0.2");
    bench.host.faults = {};
    await bench.clock.advance(60_000);
    expect([bench.loop.waitingRows, bench.loop.refusals]).toEqual([[], []]);
  });

  it("comes into force at a start all at once", async () => {
    const bench = await createFlooded();
    expect([bench.host.plans, bench.addresses().length]).toEqual([1, FLOOD + 1]);
  });
});
