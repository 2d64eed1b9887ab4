import { describe, expect, it } from "vitest";
import { rawService, rawSlice } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { createSyncBench, service, serviceElsewhere, services } from "../test-support/sync-bench.ts";
import type { SyncBench, SyncBenchOptions } from "../test-support/sync-bench.ts";
import { addressesOf, refuses, ToyHost } from "../test-support/toy-backend.ts";

/** A host that a process which is gone has left these objects in force on. */
async function hostWith(objects: readonly RawObject[]): Promise<ToyHost> {
  const host = new ToyHost();
  await (await createSyncBench(objects, { host })).stop();
  return host;
}

/** Start a new process on a host; `moments` are the addresses in force before each application of it. */
async function restart(
  host: ToyHost,
  objects: readonly RawObject[],
  options: SyncBenchOptions = {},
): Promise<SyncBench & { readonly moments: readonly (readonly string[])[] }> {
  const moments: (readonly string[])[] = [];
  const { faults = {} } = options;
  const apply = (): "before" | "after" | undefined => {
    moments.push(addressesOf(host));
    return faults.apply?.();
  };
  return { ...(await createSyncBench(objects, { ...options, host, faults: { ...faults, apply } })), moments };
}

describe("R-58 a process that starts on a host where services are in force", () => {
  it("and refuses one more takes none of them away, at no moment", async () => {
    const host = await hostWith(services(4));
    const bench = await restart(host, services(5), { faults: { refuses: refuses("10.96.0.5") } });
    const four = ["10.96.0.1", "10.96.0.2", "10.96.0.3", "10.96.0.4"];
    expect(bench.moments.filter((moment) => moment.length < 4)).toEqual([]);
    expect([bench.addresses(), bench.observer.quarantines.at(-1)]).toEqual([four, ["shop/s5:http/TCP"]]);
  });

  it("and fails once takes none of them away, and catches up in the same sync", async () => {
    for (const when of ["before", "after"] as const) {
      const host = await hostWith([...services(4), service(9)]);
      const faults = [when];
      const bench = await restart(host, services(5), { faults: { apply: () => faults.shift() } });
      const five = services(5).map((_, index) => `10.96.0.${index + 1}`);
      expect(bench.moments.filter((moment) => moment.length < 4)).toEqual([]);
      expect([bench.addresses(), bench.observer.syncs.length]).toEqual([five, 1]);
    }
  });

  it("and refuses a new form of one leaves that one as it is, until the host takes it", async () => {
    const web = rawService("web", { clusterIP: "10.96.1.1" });
    const [old, next] = [rawSlice("web", [{ ip: "10.1.1.1" }, { ip: "10.1.1.2" }]), rawSlice("web", [{ ip: "10.1.1.9" }])];
    const host = await hostWith([web, old, service(1), service(2)]);
    const before = new Map(host.objects);
    const bench = await restart(host, [web, next, service(1)], { faults: { refuses: refuses("10.1.1.9") } });
    // What the deleted Service left stays too: nobody can tell that it isn't the refused row's.
    expect(new Map(host.objects)).toEqual(before);
    bench.upsert(service(3));
    await bench.clock.advance(0);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.2", "10.96.0.3", "10.96.1.1"]);
    bench.remove("s1");
    await bench.clock.advance(0);
    expect(bench.addresses()).toEqual(["10.96.0.2", "10.96.0.3", "10.96.1.1"]);
    host.faults = {};
    await bench.clock.advance(60_000);
    expect(bench.addresses()).toEqual(["10.96.0.3", "10.96.1.1"]);
    expect(host.objects.has("pick 2")).toBe(false);
  });

  it("and refuses everything changes nothing", async () => {
    const host = await hostWith(services(3));
    const before = new Map(host.objects);
    const bench = await restart(host, [service(1), service(4), serviceElsewhere(5)], { faults: { apply: () => "before" } });
    await bench.clock.advance(5_000);
    expect([new Map(host.objects), bench.loop.lastError?.code]).toEqual([before, "tool_failed"]);
    host.faults = {};
    await bench.clock.advance(30_000);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.4", "10.96.0.5"]);
  });
});

/** A host that does what it can of a plan, and then fails altogether when there is something that it can't. */
class HalfHost extends ToyHost {
  override open(): ReturnType<ToyHost["open"]> {
    const inner = super.open();
    const apply: typeof inner.apply = async (plan, signal) => {
      const outcome = await inner.apply(plan, signal);
      for (const error of outcome.failed?.values() ?? []) throw error;
      return outcome;
    };
    return { ...inner, apply };
  }
}

describe("R-58 an application that fails half done", () => {
  it("takes back nothing that got in while the culprit is found, and of the culprit what got in", async () => {
    const host = new HalfHost();
    const bench = await restart(host, services(2));
    const moments: (readonly string[])[] = [];
    host.faults = {
      isAtomic: false,
      refuses: refuses("10.96.0.44"),
      apply: () => void moments.push(addressesOf(host)),
    };
    bench.upsert(service(3));
    bench.upsert(service(4, { externalIPs: ["10.96.0.44"] }));
    bench.remove("s1");
    await bench.clock.advance(0);
    expect(moments.slice(1).filter((moment) => !moment.includes("10.96.0.2") || !moment.includes("10.96.0.3"))).toEqual([]);
    expect([bench.addresses(), bench.observer.quarantines.at(-1)]).toEqual([["10.96.0.2", "10.96.0.3"], ["shop/s4:http/TCP"]]);
  });
});

describe("R-55 an object that fails by itself", () => {
  it("concerns the row that owns it: the others are not touched, and what changes later is not held up", async () => {
    const host = new ToyHost();
    const bench = await restart(host, services(3), { faults: { isAtomic: false, refuses: refuses("10.96.0.2") } });
    const { observations, plans } = host;
    expect([bench.addresses(), plans]).toEqual([["10.96.0.1", "10.96.0.3"], 1]);
    expect(bench.observer.quarantines).toEqual([["shop/s2:http/TCP"]]);
    bench.upsert(service(4));
    await bench.clock.advance(0);
    expect([bench.addresses(), host.plans, host.observations]).toEqual([["10.96.0.1", "10.96.0.3", "10.96.0.4"], plans + 1, observations]);
    expect([bench.loop.lastError, bench.loop.pendingSinceMs, host.violations]).toEqual([undefined, undefined, []]);
  });

  it("is retried by itself with doubling waits, told once, and heals", async () => {
    const host = new ToyHost();
    const bench = await restart(host, services(2), { retryMs: 2000, faults: { isAtomic: false, refuses: refuses("10.96.0.2") } });
    const startMs = bench.clock.nowMs();
    await bench.clock.advance(6_000);
    expect(bench.observer.syncs.map(({ atMs, put }) => [atMs - startMs, put])).toEqual([
      [0, 2],
      [250, 0],
      [750, 0],
      [1750, 0],
      [3750, 0],
      [5750, 0],
    ]);
    expect(bench.log.lines.filter(({ level }) => level === "error").map(({ fields }) => fields["object"])).toEqual([
      "destination 10.96.0.2:80 80/TCP",
    ]);
    host.faults = {};
    await bench.clock.advance(2_000);
    expect([bench.addresses(), bench.observer.quarantines.at(-1)]).toEqual([["10.96.0.1", "10.96.0.2"], []]);
  });

  it("of the skeleton takes nothing away, and is retried by itself", async () => {
    const host = await hostWith(services(3));
    const { plans } = host;
    const bench = await restart(host, services(4), { faults: { isAtomic: false, refuses: ({ kind }) => kind === "base" } });
    bench.loop.setHost({ generation: 2 });
    await bench.clock.advance(0);
    bench.upsert(service(5));
    await bench.clock.advance(0);
    expect(bench.moments.filter((moment) => moment.length < 3)).toEqual([]);
    expect([bench.addresses().length, host.plans - plans, host.objects.get("base base")?.value]).toEqual([
      5,
      3,
      { bit: 14, generation: 1 },
    ]);
    expect(bench.observer.quarantines).toEqual([[], []]);
    expect(bench.log.lines.filter(({ level }) => level === "error").map(({ fields }) => fields["object"])).toEqual(["base base"]);
    host.faults = {};
    await bench.clock.advance(1_000);
    expect(host.objects.get("base base")?.value).toEqual({ bit: 14, generation: 2 });
  });

  it("fails a sync that is to happen once, after the rest is in force", async () => {
    const host = new ToyHost();
    const bench = await restart(host, services(2), { isIdle: true, faults: { isAtomic: false, refuses: ({ kind }) => kind === "base" } });
    await expect(bench.loop.once(new AbortController().signal)).rejects.toThrow(/base base/);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.2"]);
  });
});

describe("what a backend throws", () => {
  it.each(["apply", "observe"] as const)("in %s and is no operating error is a defect, and ends the process", async (call) => {
    const host = new ToyHost();
    const bench = await restart(host, services(2), { isIdle: true });
    host.faults = {
      [call]: () => {
        throw new TypeError("undefined is not a function");
      },
    };
    await expect(bench.loop.run(new AbortController().signal)).rejects.toThrow(TypeError);
    expect(bench.observer.failures).toEqual([]);
  });

  it("while it forgets connections is a defect, too", async () => {
    const host = new ToyHost();
    const dns = (n: number): RawObject => service(n, { ports: [{ name: "dns", port: 53, protocol: "UDP" }] });
    const bench = await restart(host, [dns(1)], { isIdle: true });
    host.faults = {
      forget: () => {
        throw new TypeError("undefined is not a function");
      },
    };
    const running = Promise.allSettled([bench.loop.run(new AbortController().signal)]);
    await bench.clock.advance(100);
    bench.upsert(dns(2));
    await bench.clock.advance(100);
    expect(await running).toMatchObject([{ status: "rejected", reason: expect.any(TypeError) as unknown }]);
  });

  it("is an operating error where Node says so of a system call", async () => {
    const host = new ToyHost();
    const bench = await restart(host, services(1));
    host.faults = {
      observe: () => {
        throw Object.assign(new Error("spawn EMFILE"), { syscall: "spawn", code: "EMFILE" });
      },
    };
    bench.loop.audit();
    await bench.clock.advance(0);
    expect(bench.loop.lastError?.code).toBe("tool_failed");
  });
});
