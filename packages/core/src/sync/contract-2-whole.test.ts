import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Backend, BackendMetric, HostEvent, KernelObject } from "../contract/backend.ts";
import { parseModule } from "../contract/check-module.ts";
import { openDataplane, probeModule, withWorldOf } from "../contract/host-module.ts";
import type { FlowFilter, World } from "../contract/world.ts";
import { createFeed } from "../state/node-view.ts";
import type { Store } from "../state/store.ts";
import { flushPromises, TestClock } from "../testing/clock.ts";
import { rawNode, rawService, rawSlice } from "../testing/objects.ts";
import { cleanUpBackend } from "./clean-up.ts";
import { RecordingObserver } from "../test-support/records.ts";
import { RecordingLog } from "../testing/recording-log.ts";
import { createStoreView, POD_SETTINGS, upsertRaw } from "../testing/view.ts";
import { SyncLoop } from "./sync-loop.ts";

/** A backend with all that the first published contract 2 has; see contract-2.test.ts. */
const FILE = new URL("../../test/contract-2-whole-backend.mjs", import.meta.url);
const VIEW = { nodeName: "node1", family: "IPv4", settings: POD_SETTINGS } as const;
const PORTS = [{ name: "dns", port: 53, protocol: "UDP" }];
const [CART, TILL] = ["port UDP 10.96.0.10:53", "port UDP 10.96.0.11:53"];

/** Its host, as the file has it. */
interface WholeHost {
  addresses: readonly string[];
  readonly held: Map<string, KernelObject>;
  readonly lingering: Map<string, KernelObject>;
  readonly full: Set<string>;
  locked: boolean;
  did: string[];
  readonly forgotten: FlowFilter[];
  readonly closed: string[];
  readonly events: HostEvent<unknown>[];
  wake: () => void;
}

let host: WholeHost;
let module: ReturnType<typeof parseModule>;
let clock: TestClock;
let world: World;
let observer: RecordingObserver;
let store: Store;
let stop: AbortController;
let backend: Backend<unknown, KernelObject, unknown>;

beforeAll(async () => {
  const loaded = (await import(FILE.href)) as { readonly default: unknown; readonly host: WholeHost };
  host = loaded.host;
  module = parseModule(loaded.default, "backend contract-2-whole-backend.mjs");
});

beforeEach(() => {
  for (const kept of [host.held, host.lingering, host.full]) kept.clear();
  host.locked = false;
  host.addresses = ["127.0.0.1", "172.18.0.1"];
  for (const list of [host.did, host.forgotten, host.closed, host.events]) list.length = 0;
  clock = new TestClock();
  const outOfBounds = (): never => {
    throw new Error("this backend runs no programs");
  };
  world = { exec: { run: outOfBounds, open: outOfBounds }, clock, log: new RecordingLog() };
  observer = new RecordingObserver();
  stop = new AbortController();
  ({ store } = createStoreView([
    rawNode("node1"),
    rawService("cart", { clusterIP: "10.96.0.10", ports: PORTS }),
    rawSlice("cart", [{ ip: "10.1.1.5" }], { ports: PORTS }),
  ]));
});

/** Do something with the backend as a process does that has just begun. */
async function inProcess(work: (loop: SyncLoop<unknown, KernelObject, unknown>) => Promise<void>, turnMs: number = 1_000): Promise<void> {
  await withWorldOf(module, world, async (own) => {
    const options = module.parseOptions({ table: "mine" });
    const { facts, capabilities } = await probeModule(module, options, own, stop.signal);
    const dataplane = await openDataplane(module, options, own, stop.signal);
    backend = dataplane.family("IPv4");
    const feed = createFeed(store, VIEW);
    const timing = { minIntervalMs: 0, maxIntervalMs: 3_600_000, retryMs: 30_000, turnMs };
    const loop = new SyncLoop({ backend, feed, family: "IPv4", host: facts, clock, log: own.log, observer, capabilities, ...timing });
    const running = loop.run(stop.signal);
    await flushPromises();
    await work(loop);
    stop.abort();
    await running;
    await dataplane.close(AbortSignal.abort());
  });
}

const putTill = (): void => {
  upsertRaw(store, rawService("till", { clusterIP: "10.96.0.11", ports: PORTS }));
  upsertRaw(store, rawSlice("till", [{ ip: "10.1.1.6" }], { ports: PORTS }));
};
/** What it has done since this was asked last. */
const did = (): readonly string[] => host.did.splice(0);

describe("a backend that uses all of contract 2", () => {
  test("has what its probe leaves of its capabilities, its own variants and defaults, and its own world", async () => {
    const { capabilities, variants } = await probeModule(module, {}, { ...world, host } as World, stop.signal);
    expect(capabilities).toMatchObject({ IPv4: true, hairpin: true, drop: true, SCTP: "not in this kernel" });
    expect(variants).toMatchObject({
      undefinedClusterIPPort: "reject",
      affinityScope: "address",
      rejectFromHost: false,
      unallocatedClusterIP: "pass",
    });
    expect(() => module.parseOptions({ tabel: "mine" })).toThrow("[invalid_object] unknown option tabel");
    const dataplane = await openDataplane(module, {}, { ...world, host } as World, stop.signal);
    expect(() => dataplane.family("IPv6")).toThrow("[host_unsupported] no IPv6 here");
    await inProcess(() => Promise.resolve());
    expect(host.closed).toEqual(["dataplane", "world"]);
  });

  test("is brought in force, a change with what was before; what it removes lingers, is revived, and is finished when due", async () => {
    await inProcess(async () => {
      expect(did()).toEqual(["add node mine node1", `add ${CART}`, "add size 1"]);
      upsertRaw(store, rawSlice("cart", [{ ip: "10.1.1.5" }, { ip: "10.1.2.6" }], { ports: PORTS }));
      await flushPromises();
      expect(did()).toEqual([`change ${CART}`, "add size 2", "remove size 1"]);
      await clock.advance(400);
      upsertRaw(store, rawSlice("cart", [{ ip: "10.1.2.6" }], { ports: PORTS }));
      await flushPromises();
      expect(did()).toEqual([`change ${CART}`, "revive size 1", "remove size 2"]);
      await clock.advance(1_000);
      expect(did()).toEqual(["finish size 2 after 1000 ms"]);
      expect([...host.held.keys()].toSorted()).toEqual(["node mine node1", CART, "size 1"]);
    });
    expect(host.forgotten).toContainEqual({ protocol: "UDP", address: "10.96.0.10", port: 53, keep: ["10.1.2.6:53"] });
  });

  test("is planned again for what it deferred, at once", async () => {
    await inProcess(async () => {
      for (let turn = 0; turn < 3; turn++) await clock.advance(10);
      expect(did()).toEqual(["add node mine node1", `add ${CART}`, "add size 1"]);
      expect(observer.syncs.map(({ deferred }) => deferred)).toEqual([2, 1, 0]);
    }, 0);
  });

  test("has an object that failed tried again, and all others in force meanwhile", async () => {
    host.full.add(CART);
    putTill();
    await inProcess(async (loop) => {
      expect([...host.held.keys()]).toContain(TILL);
      expect([...host.held.keys()]).not.toContain(CART);
      expect(loop.lastError).toBeUndefined();
      expect(backend.metrics?.()).toEqual([
        expect.objectContaining({ value: 1, kind: "counter", labels: { table: "mine" } } satisfies Partial<BackendMetric>),
      ]);
      host.full.clear();
      await clock.advance(500);
      expect([...host.held.keys()]).toContain(CART);
    });
  });

  test("that threw is looked at, and has the rest done", async () => {
    host.locked = true;
    await inProcess(async (loop) => {
      expect(loop.lastError?.message).toContain("the table is locked");
      host.locked = false;
      await clock.advance(1_000);
      expect([...host.held.keys()].toSorted()).toEqual(["node mine node1", CART, "size 1"]);
    });
  });

  test("tells facts and drift, which come into force and are mended", async () => {
    await inProcess(async (loop) => {
      const reported: unknown[] = [];
      const watching = (async (): Promise<void> => {
        for await (const event of backend.watch?.(stop.signal) ?? []) {
          reported.push(event);
          if (event.kind === "facts") loop.setHost(event.facts);
          else loop.audit();
        }
      })();
      host.addresses = ["127.0.0.1", "172.18.0.1", "172.18.0.9"];
      upsertRaw(store, rawNode("node1", { addresses: ["172.18.0.9"] }));
      host.events.push({ kind: "facts", facts: { addresses: host.addresses } });
      host.wake();
      await flushPromises();
      expect(host.held.get("node mine node1")?.value).toEqual({ answering: ["172.18.0.9"] });
      host.held.delete(CART);
      host.events.push({ kind: "drift", what: "somebody else deleted a port" });
      host.wake();
      await flushPromises();
      expect(host.held.has(CART)).toBe(true);
      expect(backend.reportsDrift).toBe(true);
      expect(reported).toHaveLength(3);
      stop.abort();
      host.wake();
      await watching;
    });
  });

  test("says what it would do, what it leaves behind, and is cleaned up", async () => {
    const plans: string[] = [];
    await inProcess(async () => {
      const delta = { put: [{ after: { kind: "port", key: "x", value: true } }], remove: [], lingering: [], nowMs: 0 };
      plans.push(backend.explain?.(backend.plan(delta)) ?? "");
      expect(backend.isShared?.({ kind: "size", key: "1", value: true })).toBe(true);
      expect(await backend.leftovers?.(true, stop.signal)).toEqual([]);
      expect(await backend.leftovers?.(false, stop.signal)).toMatchObject([{ what: "table mine" }]);
      await cleanUpBackend(backend, clock, stop.signal);
      expect(host.held.size).toBe(0);
    });
    expect(plans).toEqual(["add port x"]);
  });
});
