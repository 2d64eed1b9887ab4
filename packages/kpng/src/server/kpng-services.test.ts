import * as globalv1 from "../gen/kpng/globalv1/globalv1.ts";
import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { GLOBAL_WATCH_PATH } from "../link/paths.ts";
import { rawNode, rawService, rawSlice, upsertRaw } from "@turnout/core/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { eventually, linesOf, TestStateServer } from "../test-support/state-server.ts";

let stateServer: TestStateServer;
beforeEach(async () => {
  stateServer = await TestStateServer.start();
});

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 30));

describe("localv1", () => {
  test("says nothing before a request, Reset at once, and the state when the lists are complete", async () => {
    stateServer = await TestStateServer.start({ isSynced: false });
    const watcher = stateServer.open();
    stateServer.cart();
    await eventually(() => stateServer.server?.stats.silentStreams === 1);
    await turn();
    expect(watcher.messages).toEqual([]);
    watcher.ask("node1");
    await eventually(() => watcher.messages.length === 1);
    await turn();
    expect(watcher.messages.map((bytes) => bytes.toString("hex"))).toEqual(["2200"]);
    stateServer.sync();
    expect(await watcher.changes()).toEqual(["reset", "set shop/cart", "set shop/cart/cart-a", "set shop/cart/cart-b", "sync"]);
    expect(watcher.messages.at(-1)?.toString("hex")).toBe("0a00");
  });

  test("gives an empty cluster its Sync too", async () => {
    const watcher = stateServer.open();
    watcher.ask("node1");
    expect(await watcher.changes()).toEqual(["reset", "sync"]);
  });

  test("sends one change set for each request, with everything since the last", async () => {
    stateServer.cart();
    const watcher = stateServer.open();
    watcher.ask("node1");
    await watcher.changes();
    for (let update = 1; update <= 20; update++) {
      stateServer.cart(["10.1.1.1", `10.1.2.${update}`]);
      stateServer.service(update);
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (let gone = 2; gone <= 20; gone++) stateServer.store.remove("Service", "shop", `s${gone}`);
    await turn();
    expect(watcher.messages).toHaveLength(5);
    watcher.ask("node1");
    const ops = await watcher.changes();
    expect(ops).toEqual(["set shop/s1", "set shop/cart/cart-b", expect.stringMatching(/^set shop\/s1\/[0-9a-f]+$/), "sync"]);
  });

  test("answers requests sent ahead one after the other, each with its own change", async () => {
    const watcher = stateServer.open();
    for (let credit = 0; credit < 40; credit++) watcher.ask("node1");
    await watcher.changes();
    for (let index = 0; index < 39; index++) {
      stateServer.service(index);
      expect((await watcher.changes()).filter((op) => !/\/s\d+\//.test(op))).toEqual([`set shop/s${index}`, "sync"]);
    }
    stateServer.service(99);
    await turn();
    expect(watcher.messages.length).toBe(2 + 39 * 3);
  });

  test("noise is not told", async () => {
    stateServer.cart();
    const watcher = stateServer.open();
    watcher.ask("node1");
    await watcher.changes();
    watcher.ask("node1");
    for (let round = 0; round < 20; round++) {
      stateServer.cart();
      upsertRaw(stateServer.store, rawNode("node7"));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await turn();
    expect(watcher.messages).toHaveLength(5);
    stateServer.store.remove("EndpointSlice", "shop", "cart-1");
    expect(await watcher.changes()).toEqual(
      ["delete shop/cart/cart-b", "delete shop/cart/cart-a", "set shop/cart", "sync"].toSorted(byGroup),
    );
  });

  test("a Service goes after its endpoints, and both families at once", async () => {
    upsertRaw(stateServer.store, rawService("dual", { clusterIP: "10.96.0.9", clusterIPs: ["10.96.0.9", "fd00:96::9"] }));
    upsertRaw(stateServer.store, rawSlice("dual", [{ ip: "10.1.1.9", node: "node1", pod: "dual-a" }]));
    const six = { name: "dual-6", addressType: "IPv6" };
    upsertRaw(stateServer.store, rawSlice("dual", [{ ip: "fd00:1::9", node: "node1", pod: "dual-a" }], six));
    const watcher = stateServer.open();
    watcher.ask("node1");
    expect(await watcher.changes()).toEqual(["reset", "set shop/dual", "set shop/dual/dual-a", "sync"]);
    expect(localv1.Endpoint.decode(watcher.value("shop/dual/dual-a"))).toMatchObject({
      IPs: { V4: ["10.1.1.9"], V6: ["fd00:1::9"] },
      Local: true,
      PortOverrides: [{ Name: "http", Port: 8080 }],
      Scopes: { Internal: true, External: true },
    });
    watcher.ask("node1");
    stateServer.store.remove("Service", "shop", "dual");
    expect(await watcher.changes()).toEqual(["delete shop/dual/dual-a", "delete shop/dual", "sync"]);
  });

  test("another node's name in the stream gives the difference, without a Reset", async () => {
    stateServer.cart();
    stateServer.service(1);
    const watcher = stateServer.open();
    watcher.ask("node1");
    await watcher.changes();
    expect(localv1.Endpoint.decode(watcher.value("shop/cart/cart-b")).Local).toBe(false);
    watcher.ask("node2");
    expect(await watcher.changes()).toEqual(["set shop/cart/cart-a", "set shop/cart/cart-b", "sync"]);
    expect(localv1.Endpoint.decode(watcher.value("shop/cart/cart-b")).Local).toBe(true);
    watcher.ask("node3");
    expect(await watcher.changes()).toEqual(["set shop/cart/cart-b", "sync"]);
  });

  test("who can't say its node is at none, or at the only one there is", async () => {
    stateServer.cart();
    const somewhere = stateServer.open();
    somewhere.ask("");
    await somewhere.changes();
    expect(localv1.Endpoint.decode(somewhere.value("shop/cart/cart-a")).Local).toBe(false);
    await stateServer.server?.close();
    await stateServer.serve({ onlyNode: "node1" });
    const here = stateServer.open();
    here.ask("");
    await here.changes();
    expect(localv1.Endpoint.decode(here.value("shop/cart/cart-a")).Local).toBe(true);
  });

  test("of two Services with one address the older has it, and that is told once, however many nodes ask", async () => {
    upsertRaw(stateServer.store, rawService("old", { clusterIP: "10.96.0.7" }, { created: "2020-01-01T00:00:00Z" }));
    upsertRaw(stateServer.store, rawService("new", { clusterIP: "10.96.0.7" }));
    for (const node of ["node1", "node2"]) {
      const watcher = stateServer.open();
      watcher.ask(node);
      expect(await watcher.changes()).toEqual(["reset", "set shop/old", "sync"]);
    }
    expect(linesOf(stateServer.log, "warn")).toEqual([expect.stringContaining("an address it can't have is left out")]);
  });

  test("many watchers of one node are one computation, and leave nothing behind", async () => {
    for (let index = 0; index < 50; index++) stateServer.service(index);
    const many = Array.from({ length: 10 }, () => stateServer.open());
    for (const watcher of many) watcher.ask("node1");
    for (const watcher of many) expect(await watcher.changes()).toHaveLength(102);
    const [first, second] = many;
    expect(first?.messages.map(String)).toEqual(second?.messages.map(String));
    for (const watcher of many) watcher.close();
    await eventually(() => stateServer.server?.stats.streams === 0);
  });

  test("a peer that does not read is sent no more than its window, and the newest state when it reads", async () => {
    for (let index = 0; index < 5_000; index++) stateServer.service(index);
    const watcher = stateServer.open();
    watcher.pause();
    watcher.ask("node1");
    await eventually(() => stateServer.server?.stats.streams === 1);
    await turn();
    expect(watcher.messages).toEqual([]);
    const other = stateServer.open();
    other.ask("node1");
    expect(await other.changes()).toHaveLength(10_002);
    stateServer.service(1, "node9", "10.1.9.9");
    watcher.resume();
    expect(await watcher.changes()).toHaveLength(10_002);
    watcher.ask("node1");
    expect(await watcher.changes()).toHaveLength(3);
  });
});

/** The order of groups, for comparing sets of ops. */
function byGroup(a: string, b: string): number {
  const rank = (op: string): number => (op === "sync" ? 9 : op.startsWith("set") ? 0 : 1);
  return rank(a) - rank(b);
}

describe("globalv1", () => {
  test("says nodes, Services and endpoints in whatever condition, each once", async () => {
    upsertRaw(stateServer.store, rawNode("node1", { zone: "a" }));
    upsertRaw(stateServer.store, rawService("cart", { clusterIP: "10.96.0.10" }));
    upsertRaw(stateServer.store, rawSlice("cart", [{ ip: "10.1.1.1", node: "node1", pod: "cart-a", ready: false, zones: ["a"] }]));
    upsertRaw(stateServer.store, rawService("headless", { clusterIP: "None" }));
    const watcher = stateServer.open(GLOBAL_WATCH_PATH);
    watcher.askGlobal();
    const ops = await watcher.changes();
    expect(ops).toEqual([
      "reset",
      "set |node1||",
      "set shop|cart||",
      expect.stringMatching(/^set shop\|cart\|cart-1\|[0-9a-f]{1,16}$/),
      "sync",
    ]);
    const path = ops[3]?.slice("set ".length) ?? "";
    const info = globalv1.EndpointInfo.decode(watcher.value(path));
    expect(info).toMatchObject({
      Namespace: "shop",
      ServiceName: "cart",
      SourceName: "cart-1",
      PodName: "cart-a",
      Conditions: { Ready: false },
      Topology: { Node: "node1" },
      Hints: { Zones: ["a"] },
    });
    expect(path.split("|")[3]).toBe(BigInt(info.Hash).toString(16));
    watcher.askGlobal();
    stateServer.store.remove("Node", "", "node1");
    stateServer.store.remove("Service", "shop", "cart");
    expect(await watcher.changes()).toEqual([`delete ${path}`, "delete shop|cart||", "delete |node1||", "sync"]);
  });

  test("a change of hints alone is one", async () => {
    stateServer.cart();
    const watcher = stateServer.open(GLOBAL_WATCH_PATH);
    watcher.askGlobal();
    await watcher.changes();
    watcher.askGlobal();
    upsertRaw(stateServer.store, rawSlice("cart", [{ ip: "10.1.1.1", node: "node1", pod: "cart-a", zones: ["b"] }]));
    const ops = await watcher.changes();
    expect(ops.map((op) => op.split(" ")[0])).toEqual(["set", "delete", "delete", "sync"]);
  });

  test("is not for who may ask for one node alone", async () => {
    stateServer = await TestStateServer.start({ onlyNode: "node1" });
    const watcher = stateServer.open(GLOBAL_WATCH_PATH);
    watcher.askGlobal();
    expect(await watcher.fate()).toMatch(/^7 .*only node node1 may be asked for here/);
  });
});
