import { describe, expect, it } from "vitest";
import type { KernelObject } from "../contract/backend.ts";
import { abilitiesOf, ALL_CAPABILITIES } from "../contract/capabilities.ts";
import { ProxyError } from "../model/errors.ts";
import { rawSlice } from "../testing/objects.ts";
import { createSyncBench, service, serviceElsewhere, services } from "../test-support/sync-bench.ts";
import { ToyHost } from "../test-support/toy-backend.ts";
import type { ToyFaults } from "../test-support/toy-backend.ts";

/** A host that refuses whatever answers on these addresses. */
function refusing(...addresses: readonly string[]): ToyFaults {
  return { refuses: ({ key }: KernelObject) => addresses.some((address) => key.startsWith(`${address}:`)) };
}

/** Throw the given things, one per call, then nothing. */
function script(...faults: readonly ("before" | "after" | undefined)[]): () => "before" | "after" | undefined {
  const left = [...faults];
  return () => left.shift();
}

describe("R-58 a failed apply", () => {
  it.each(["before", "after"] as const)(
    "that threw %s its effect: the host is observed and the whole difference applied, in the same sync",
    async (when) => {
      const bench = await createSyncBench(services(3));
      const { observations } = bench.host;
      bench.host.faults = { apply: script(when) };
      bench.remove("s1");
      bench.upsert(service(4));
      await bench.clock.advance(0);
      expect(bench.addresses()).toEqual(["10.96.0.2", "10.96.0.3", "10.96.0.4"]);
      expect([bench.observer.failures.length, bench.host.observations]).toEqual([0, observations + 1]);
    },
  );

  it("that keeps failing is retried with doubling waits up to the longest, and health sees it", async () => {
    const bench = await createSyncBench(services(1), { retryMs: 3000 });
    const startMs = bench.clock.nowMs();
    bench.host.faults = { apply: () => "before" };
    bench.upsert(service(2));
    bench.upsert(serviceElsewhere(3));
    await bench.clock.advance(12_000);
    expect(bench.observer.failures.map(({ atMs }) => atMs - startMs)).toEqual([0, 250, 750, 1750, 3750, 6750, 9750]);
    expect([bench.loop.pendingSinceMs, bench.loop.lastSuccessMs, bench.loop.lastError?.code]).toEqual([startMs, startMs, "tool_failed"]);
    bench.host.faults = {};
    await bench.clock.advance(3000);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.2", "10.96.0.3"]);
    expect([bench.loop.pendingSinceMs, bench.loop.lastError]).toEqual([undefined, undefined]);
    bench.host.faults = { apply: () => "before" };
    bench.upsert(service(4));
    bench.upsert(serviceElsewhere(5));
    const againMs = bench.clock.nowMs();
    await bench.clock.advance(250);
    expect(bench.observer.failures.slice(-2).map(({ atMs }) => atMs - againMs)).toEqual([0, 250]);
  });

  it.each(["timed_out", "permission_denied", "tool_missing"] as const)("as %s is no row's fault: each is not tried alone", async (code) => {
    const bench = await createSyncBench(services(1));
    let calls = 0;
    bench.host.faults = { code, apply: () => (calls++, "before") };
    for (const n of [2, 3, 4, 5]) bench.upsert(service(n));
    await bench.clock.advance(0);
    expect([calls, bench.loop.lastError?.code]).toEqual([2, code]);
    await bench.clock.advance(250);
    expect(calls).toBe(3);
    bench.host.faults = {};
    await bench.clock.advance(1000);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.2", "10.96.0.3", "10.96.0.4", "10.96.0.5"]);
  });

  it("with a host that nobody can look at any more goes on from what was put there, until a change fails", async () => {
    const bench = await createSyncBench(services(1), { maxIntervalMs: 10_000 });
    bench.host.faults = { code: "host_unsupported", observe: () => true };
    await bench.clock.advance(10_000);
    bench.upsert(service(2));
    await bench.clock.advance(1_000);
    expect([bench.addresses(), bench.observer.failures.length]).toEqual([["10.96.0.1", "10.96.0.2"], 0]);
    bench.host.faults = { code: "host_unsupported", observe: () => true, apply: script("after") };
    bench.upsert(service(3));
    await bench.clock.advance(1_000);
    expect([bench.host.violations, bench.loop.lastError?.code]).toEqual([[], "host_unsupported"]);
    bench.host.faults = {};
    await bench.clock.advance(30_000);
    expect([bench.addresses(), bench.loop.lastError]).toEqual([["10.96.0.1", "10.96.0.2", "10.96.0.3"], undefined]);
  });

  it("with a look that failed for another reason believes nothing until one succeeds", async () => {
    const bench = await createSyncBench(services(1), { maxIntervalMs: 10_000 });
    bench.host.faults = { code: "timed_out", observe: () => true };
    await bench.clock.advance(10_000);
    bench.upsert(service(2));
    await bench.clock.advance(1_000);
    expect([bench.addresses(), bench.loop.lastError?.code]).toEqual([["10.96.0.1"], "timed_out"]);
    bench.host.faults = {};
    await bench.clock.advance(30_000);
    expect([bench.addresses(), bench.loop.lastError]).toEqual([["10.96.0.1", "10.96.0.2"], undefined]);
  });

  it("with a host that can't be looked at changes nothing, and recovers", async () => {
    const bench = await createSyncBench(services(1));
    bench.host.faults = { apply: script("before"), observe: () => true };
    bench.upsert(service(2));
    await bench.clock.advance(5000);
    expect(bench.addresses()).toEqual(["10.96.0.1"]);
    bench.host.faults = {};
    await bench.clock.advance(30_000);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.2"]);
  });

  it("of rows that come one by one counts as failed as soon as two namespaces' wait", async () => {
    const bench = await createSyncBench(services(1));
    bench.host.faults = { apply: () => "before" };
    bench.upsert(service(2));
    await bench.clock.advance(100);
    bench.upsert(serviceElsewhere(3));
    await bench.clock.advance(60_000);
    expect(bench.observer.failures.length).toBeGreaterThan(3);
    expect(bench.loop.pendingSinceMs).toBeDefined();
  });

  it("of all rows of one namespace is no failure of the host, and nobody else's health", async () => {
    const bench = await createSyncBench(services(1));
    bench.host.faults = refusing("10.96.0.2", "10.96.0.3");
    bench.upsert(service(2));
    bench.upsert(service(3));
    await bench.clock.advance(120_000);
    expect([bench.observer.failures, bench.loop.pendingSinceMs]).toEqual([[], undefined]);
    expect(bench.observer.quarantines.at(-1)).toEqual(["shop/s2:http/TCP", "shop/s3:http/TCP"]);
  });

  it("after drift shows in health although nothing changed", async () => {
    const bench = await createSyncBench(services(1));
    await bench.clock.advance(1000);
    bench.host.objects.clear();
    bench.host.faults = { apply: () => "before" };
    bench.loop.audit();
    const sinceMs = bench.clock.nowMs();
    await bench.clock.advance(60_000);
    expect(bench.loop.pendingSinceMs).toBe(sinceMs);
    bench.host.faults = {};
    await bench.clock.advance(60_000);
    expect([bench.loop.pendingSinceMs, bench.addresses()]).toEqual([undefined, ["10.96.0.1"]]);
  });
});

describe("R-55 one row the host refuses", () => {
  it("as something it does not support is found like any other", async () => {
    const bench = await createSyncBench(services(4), { faults: { ...refusing("10.96.0.3"), code: "host_unsupported" } });
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.2", "10.96.0.4"]);
  });

  it("is found among many, held back and named; the others are in force", async () => {
    const bench = await createSyncBench(services(20), { faults: refusing("10.96.0.7") });
    expect(bench.addresses()).toHaveLength(19);
    expect(bench.observer.quarantines).toEqual([["shop/s7:http/TCP"]]);
    expect(bench.log.lines.filter(({ level }) => level === "error").map(({ fields }) => fields["row"])).toEqual(["shop/s7:http/TCP"]);
    expect(bench.observer.syncs).toHaveLength(1);
  });

  it("that was in force stays as it was", async () => {
    const bench = await createSyncBench([service(1), rawSlice("s1", [{ ip: "10.1.1.1" }])]);
    const before = bench.host.objects.get("destination 10.96.0.1:80 80/TCP");
    bench.host.faults = { refuses: ({ value }) => JSON.stringify(value).includes("10.1.1.9") };
    bench.upsert(rawSlice("s1", [{ ip: "10.1.1.9" }]));
    bench.upsert(service(2));
    await bench.clock.advance(0);
    expect(bench.host.objects.get("destination 10.96.0.1:80 80/TCP")).toEqual(before);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.2"]);
  });

  it("does not hold up others that change later, and comes into force when the host takes it", async () => {
    const bench = await createSyncBench(services(3), { faults: refusing("10.96.0.2") });
    for (let n = 4; n < 8; n++) {
      bench.upsert(service(n));
      await bench.clock.advance(50);
      expect(bench.addresses()).toContain(`10.96.0.${n}`);
    }
    bench.host.faults = {};
    await bench.clock.advance(60_000);
    expect(bench.addresses()).toContain("10.96.0.2");
    expect(bench.observer.quarantines.at(-1)).toEqual([]);
  });

  it("comes into force at once when its Service is mended, and is forgotten when it goes", async () => {
    const bench = await createSyncBench(services(3), { faults: refusing("10.96.0.2", "10.96.0.3") });
    bench.upsert(service(2, { clusterIP: "10.96.0.22" }));
    bench.remove("s3");
    await bench.clock.advance(0);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.22"]);
    await bench.clock.advance(120_000);
    const plans = bench.host.plans;
    await bench.clock.advance(120_000);
    expect(bench.host.plans).toBe(plans);
  });

  it("is retried ever less often", async () => {
    const bench = await createSyncBench(services(2), { faults: refusing("10.96.0.2"), retryMs: 2000 });
    const startMs = bench.clock.nowMs();
    await bench.clock.advance(8000);
    const times = bench.observer.syncs.map(({ atMs }) => atMs - startMs);
    expect(times.slice(0, 5)).toEqual([0, 250, 750, 1750, 3750]);
    expect(times.at(-1)).toBe(7750);
  });

  it("since new host facts came is found too", async () => {
    const bench = await createSyncBench(services(5));
    bench.host.faults = { refuses: ({ key, value }) => key.startsWith("10.96.0.3:") && JSON.stringify(value).includes('"generation":2') };
    bench.loop.setHost({ generation: 2 });
    await bench.clock.advance(0);
    bench.upsert(service(6));
    await bench.clock.advance(1000);
    expect(bench.addresses()).toContain("10.96.0.6");
    expect(bench.observer.quarantines.at(-1)).toEqual(["shop/s3:http/TCP"]);
  });
});

describe("host facts that change while a plan is carried out", () => {
  it("count from the next sync on, and a row refused for them is found", async () => {
    const bench = await createSyncBench(services(5));
    let isFirst = true;
    bench.host.faults = {
      apply: () => {
        if (isFirst) bench.loop.setHost({ generation: 2 });
        isFirst = false;
        return undefined;
      },
      refuses: ({ key, value }) => key.startsWith("10.96.0.3:") && JSON.stringify(value).includes('"generation":2'),
    };
    bench.upsert(service(6));
    await bench.clock.advance(1000);
    expect(bench.observer.failures).toEqual([]);
    expect(bench.observer.quarantines.at(-1)).toEqual(["shop/s3:http/TCP"]);
    expect(bench.host.objects.get("base base")?.value).toEqual({ bit: 14, generation: 2 });
    expect(bench.addresses()).toHaveLength(6);
  });
});

describe("dry run", () => {
  it("tells the plan and touches nothing, once per change", async () => {
    const reported: string[] = [];
    const bench = await createSyncBench(services(2), { dryRun: (text) => void reported.push(text) });
    expect(reported).toEqual(["put base base\nput destination 10.96.0.1:80 80/TCP\nput destination 10.96.0.2:80 80/TCP"]);
    bench.remove("s1");
    await bench.clock.advance(5000);
    expect(reported.slice(1)).toEqual(["remove destination 10.96.0.1:80 80/TCP"]);
    expect([bench.host.plans, bench.host.forgotten.length]).toEqual([0, 0]);
  });
});

describe("once", () => {
  const never = new AbortController().signal;

  it("applies the first state and returns", async () => {
    const bench = await createSyncBench(services(2), { isIdle: true });
    await bench.loop.once(never);
    expect([bench.addresses().length, bench.host.plans]).toEqual([2, 1]);
  });

  it("throws what it failed with", async () => {
    const bench = await createSyncBench(services(1), { isIdle: true, faults: { apply: () => "before" } });
    await expect(bench.loop.once(never)).rejects.toSatisfy((error) => ProxyError.is(error, "tool_failed"));
  });

  it("tries again, where it is asked to, until it succeeds", async () => {
    let fails = 3;
    const bench = await createSyncBench(services(1), { isIdle: true, faults: { apply: () => (fails-- > 0 ? "before" : undefined) } });
    const done = bench.loop.once(never, "retries");
    await bench.clock.advance(10_000);
    await done;
    expect(fails).toBeLessThan(0);
    expect(bench.addresses()).toEqual(["10.96.0.1"]);
  });

  it("throws what it failed with last, when its time is over", async () => {
    const bench = await createSyncBench(services(1), { isIdle: true, faults: { apply: () => "before" } });
    const stop = new AbortController();
    const done = bench.loop.once(stop.signal, "retries");
    await bench.clock.advance(10_000);
    stop.abort();
    await expect(done).rejects.toSatisfy((error) => ProxyError.is(error, "tool_failed"));
  });

  it("doesn't try again what no later attempt changes", async () => {
    const bench = await createSyncBench(services(1), { isIdle: true, faults: { apply: () => "before", code: "permission_denied" } });
    await expect(bench.loop.once(never, "retries")).rejects.toSatisfy((error) => ProxyError.is(error, "permission_denied"));
  });

  it("throws when a row was refused, naming it, after bringing the others into force", async () => {
    const bench = await createSyncBench(services(3), { isIdle: true, faults: refusing("10.96.0.2") });
    await expect(bench.loop.once(never)).rejects.toThrow(/shop\/s2:http\/TCP/);
    expect(bench.addresses()).toEqual(["10.96.0.1", "10.96.0.3"]);
  });

  it("ends with canceled when it is stopped", async () => {
    const bench = await createSyncBench([], { isIdle: true, isSynced: false });
    const stop = new AbortController();
    const done = bench.loop.once(stop.signal);
    stop.abort();
    await expect(done).rejects.toSatisfy((error) => ProxyError.is(error, "canceled"));
  });
});

describe("R-56 capabilities in the loop", () => {
  it("rows are reduced before they are rendered, each reported", async () => {
    const cannot = "not here";
    const { capabilities } = abilitiesOf({ capabilities: { ...ALL_CAPABILITIES, SCTP: cannot, sessionAffinity: cannot } });
    const ports = [
      { name: "a", port: 1, protocol: "SCTP" },
      { name: "b", port: 2 },
    ];
    const bench = await createSyncBench([service(1, { sessionAffinity: "ClientIP", ports })], { capabilities });
    expect([...bench.loop.rows.values()]).toMatchObject([{ key: "shop/s1:b/TCP", affinitySeconds: undefined }]);
    expect(bench.issues.map(({ object }) => object)).toEqual(["Service port shop/s1:a/SCTP", "Service port shop/s1:b/TCP"]);
  });
});

it("an apply that resolves to nothing is a defect of the backend, told in a line", async () => {
  const host = new ToyHost();
  const inner = host.open();
  const apply = (() => Promise.resolve()) as unknown as typeof inner.apply;
  host.open = () => ({ ...inner, apply });
  const bench = await createSyncBench(services(1), { host, isIdle: true });
  await expect(bench.loop.once(new AbortController().signal)).rejects.toThrow(
    "defect of the backend: apply resolved to undefined, not to an Outcome: {} says that all is in force",
  );
});

it("an observe that resolves to no state is a defect of the backend, told in a line", async () => {
  const host = new ToyHost();
  const inner = host.open();
  const observe = (() => Promise.resolve({ objects: new Map() })) as unknown as typeof inner.observe;
  host.open = () => ({ ...inner, observe });
  const bench = await createSyncBench(services(1), { host, isIdle: true });
  await expect(bench.loop.once(new AbortController().signal)).rejects.toThrow("what observe gave back is wrong: lingering is missing");
});
