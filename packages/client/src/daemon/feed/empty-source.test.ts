import { ProxyError, type ChangeSet, type IPFamily } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SERVICE, toyConfig, ToyProxy } from "../../test-support/toy-proxy.ts";
import {
  eventually,
  freePort,
  flushPromises,
  toyChange,
  toyFull,
  toyModule,
  toyNode,
  toyRow,
  withBackends,
} from "../../test-support/toys.ts";
import { FamilyStates } from "./family-states.ts";
import { countForRows, NodeFeed } from "./node-feed.ts";

let proxy: ToyProxy;

beforeEach(() => {
  proxy = new ToyProxy();
});

afterEach(() => proxy.end());

/** What is in force of a family. */
const active = (family: IPFamily = "IPv4"): readonly string[] => [...proxy.kernel.objects[family].keys()];
const errors = (): readonly string[] => proxy.world.log.lines.filter((line) => line.startsWith("error"));

/** As a process before left it: a service of one family, and the table of each. */
function leaveRules(family: IPFamily = "IPv4"): void {
  for (const each of ["IPv4", "IPv6"] as const) {
    proxy.kernel.objects[each].set(`table ${each}`, { kind: "table", key: each, value: "first facts" });
  }
  proxy.kernel.objects[family].set(SERVICE, { kind: "service", key: "10.96.0.10:80", value: ["10.1.0.5"] });
}

function pushEmpty(family: IPFamily, instance = "toy"): void {
  proxy.feeds[family].push({ ...toyFull([], toyNode({ family })), instance });
}

function pushBothEmpty(): void {
  for (const family of ["IPv4", "IPv6"] as const) pushEmpty(family);
}

describe("a start on a source without any Service, where rules are in force", () => {
  beforeEach(() => leaveRules());

  test("is an error of a one-time sync, in one line; nothing is removed", async () => {
    pushBothEmpty();
    await expect(proxy.start({ once: true })).rejects.toThrow(
      "[not_found] the source has no Service, but rules of Services are in force here: IPv4 of node node1: " +
        "the rules stay; check --source, or pass --allow-empty if there should be no Service",
    );
    expect(active()).toEqual(["table IPv4", SERVICE]);
  });

  test("removes them when that is said to be meant", async () => {
    pushBothEmpty();
    await proxy.start({ once: true, allowsEmpty: true });
    expect(active()).toEqual(["table IPv4"]);
  });

  test("is told once by a daemon, which goes on with the first Service there is", async () => {
    void proxy.start();
    pushBothEmpty();
    await flushPromises();
    proxy.feeds.IPv4.push(toyChange({ node: toyNode({ zone: "b" }) }));
    await flushPromises();
    expect(active()).toEqual(["table IPv4", SERVICE]);
    expect(errors()).toHaveLength(1);
    proxy.feeds.IPv4.push(toyChange({ set: [toyRow("cart"), toyRow("till", { destinations: [] })] }));
    await flushPromises();
    expect(active()).toEqual(["table IPv4", SERVICE]);
    proxy.feeds.IPv4.push(toyChange({ delete: ["shop/cart:http/TCP"] }));
    await proxy.world.clock.advance(100);
    expect(active()).toEqual(["table IPv4"]);
  });

  test("turns health bad after two sync periods, as any change that waits", async () => {
    const port = await freePort();
    void proxy.start({ config: toyConfig({ healthzBindAddress: { ip: "127.0.0.1", port } }) });
    const code = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/livez`)).status;
    await eventually("the health server", () => proxy.world.log.lines.some((line) => line.startsWith("info serving healthz")));
    pushBothEmpty();
    await flushPromises();
    expect(await code()).toBe(200);
    await proxy.world.clock.advance(60_000);
    expect(await code()).toBe(503);
    proxy.feeds.IPv4.push(toyChange({ set: [toyRow("cart")] }));
    await flushPromises();
    expect(await code()).toBe(200);
  });

  test("is believed of a family when the other has Services", async () => {
    void proxy.start();
    pushEmpty("IPv4");
    await flushPromises();
    // IPv6 has not told yet: nothing is removed, and nothing is complained of.
    expect([active(), errors()]).toEqual([["table IPv4", SERVICE], []]);
    proxy.feeds.IPv6.push(toyFull([toyRow("six", { family: "IPv6" })], toyNode({ family: "IPv6" })));
    await flushPromises();
    expect(active()).toEqual(["table IPv4"]);
    expect(errors()).toEqual([]);
  });

  test("is believed of a family as soon as the other gets a Service", async () => {
    void proxy.start();
    pushBothEmpty();
    await flushPromises();
    expect(active()).toEqual(["table IPv4", SERVICE]);
    proxy.feeds.IPv6.push(toyChange({ family: "IPv6", set: [toyRow("six", { family: "IPv6" })] }));
    await proxy.world.clock.advance(100);
    expect(active()).toEqual(["table IPv4"]);
  });

  test("is asked again when the host can't be looked at", async () => {
    let looks = 0;
    const module = toyModule(proxy.kernel);
    const observe = (): Promise<never> => {
      looks += 1;
      return Promise.reject(new ProxyError("tool_failed", "the tool hangs"));
    };
    void proxy.start(
      {},
      withBackends(module, () => ({ observe })),
    );
    pushBothEmpty();
    await flushPromises();
    for (let second = 0; second < 31; second += 1) await proxy.world.clock.advance(1_000);
    expect(active()).toEqual(["table IPv4", SERVICE]);
    // Two more say whether the proxy is ready while the source says nothing.
    expect(looks).toBe(6);
  });
});

test("a start on an empty source and an empty host is well, and so is one beside an empty table", async () => {
  pushBothEmpty();
  await proxy.start({ once: true });
  expect([active("IPv4"), active("IPv6")]).toEqual([["table IPv4"], ["table IPv6"]]);
  pushBothEmpty();
  await proxy.start({ once: true });
});

describe("while it runs", () => {
  test("the last Service may go", async () => {
    await proxy.started();
    proxy.feeds.IPv4.push(toyChange({ delete: ["shop/cart:http/TCP"] }));
    await proxy.world.clock.advance(100);
    expect(active()).toEqual(["table IPv4"]);
  });

  test("another node-state server without any Service is not believed until it has one", async () => {
    await proxy.started();
    pushEmpty("IPv4", "another-1");
    await flushPromises();
    // Whether it has any of the other family is not known yet, whatever the one before had.
    expect([active(), errors()]).toEqual([["table IPv4", SERVICE], []]);
    pushEmpty("IPv6", "another-2");
    await proxy.world.clock.advance(100);
    expect(active()).toEqual(["table IPv4", SERVICE]);
    expect(errors()).toHaveLength(1);
    proxy.feeds.IPv4.push({ ...toyFull([toyRow("till", { destinations: [] })]), instance: "another-1" });
    await proxy.world.clock.advance(100);
    expect(active()).toEqual(["table IPv4"]);
  });
});

test("another node-state server without a Service of one family is believed when it has some of the other", async () => {
  await proxy.started();
  pushEmpty("IPv4", "another-1");
  await proxy.world.clock.advance(100);
  expect(active()).toEqual(["table IPv4", SERVICE]);
  const six = toyFull([toyRow("six", { family: "IPv6" })], toyNode({ family: "IPv6" }));
  proxy.feeds.IPv6.push({ ...six, instance: "another-2" });
  await proxy.world.clock.advance(100);
  expect([active(), errors()]).toEqual([["table IPv4"], []]);
});

test("what lingers, and the skeleton, is not held for rows", () => {
  const table = { kind: "table", key: "t", value: 1 };
  const idle = { kind: "chain", key: "idle", value: 1 };
  const objects = new Map([
    ["table t", { ...table, value: 2 }],
    ["chain idle", idle],
  ]);
  expect(countForRows({ objects, lingering: [] }, [table])).toBe(1);
  expect(countForRows({ objects, lingering: [idle] }, [table])).toBe(0);
  expect(countForRows(undefined, [])).toBe(0);
});

describe("a feed that is lost while a state is in doubt", () => {
  const never = new AbortController().signal;

  /** A guard on a host that holds rules, and a feed that gives what is pushed or fails when told to. */
  function createGuard(): { guard: NodeFeed; push: (changes: ChangeSet) => void; lose: () => void } {
    const pushed: ChangeSet[] = [];
    let waiting = Promise.withResolvers<ChangeSet>();
    const next = (): Promise<ChangeSet> => {
      const changes = pushed.shift();
      if (changes !== undefined) return Promise.resolve(changes);
      waiting = Promise.withResolvers<ChangeSet>();
      return waiting.promise;
    };
    const guard = new NodeFeed({
      feed: { next },
      family: "IPv4",
      log: proxy.world.log,
      bound: { entriesMax: 10, report: () => undefined },
      guard: { states: new FamilyStates(), countOnHost: () => Promise.resolve(1), failsAtOnce: false, nowMs: () => 0 },
    });
    return {
      guard,
      push: (changes) => void pushed.push(changes),
      lose: () => waiting.reject(new ProxyError("feed_lost", "the feed is lost")),
    };
  }

  test("leaves it in doubt", async () => {
    const { guard, push, lose } = createGuard();
    push(toyFull([toyRow("cart")]));
    await guard.next(never);
    push({ ...toyFull([]), instance: "another node-state server" });
    const unconfirmed = Promise.allSettled([guard.next(never)]);
    await flushPromises();
    lose();
    expect(await unconfirmed).toMatchObject([{ status: "rejected" }]);
    const again = guard.next(never).then(({ set }) => set.length);
    expect(await Promise.race([again, flushPromises().then(() => "still in doubt")])).toBe("still in doubt");
  });

  test("is followed again at a start", async () => {
    const { guard, push, lose } = createGuard();
    push(toyFull([]));
    const unconfirmed = Promise.allSettled([guard.next(never)]);
    await flushPromises();
    lose();
    expect(await unconfirmed).toMatchObject([{ status: "rejected" }]);
    push(toyFull([toyRow("cart")]));
    expect((await guard.next(never)).set).toHaveLength(1);
  });
});
