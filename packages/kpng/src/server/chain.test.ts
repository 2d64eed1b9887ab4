import { NodeLink } from "@turnout/client/protocol";
import { applyChangeSet, FAMILIES, type ChangeSet, type Clock, type IPFamily, type ServicePort } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { POD_SETTINGS, rawNode, rawService, rawSlice, RecordingLog, rowsOf, TestClock, upsertRaw } from "@turnout/core/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { createRelayProvider } from "@turnout/server/serve";
import { TestKpngServer } from "../test-support/test-kpng-server.ts";
import { KpngWatcher } from "../test-support/kpng-watcher.ts";
import { eventually, linesOf, TestStateServer } from "../test-support/state-server.ts";

type Raw = ReturnType<typeof rawService>;

let stateServer: TestKpngServer;
let link: NodeLink;
let log: RecordingLog;

async function follow(protocols: readonly ("globalv1" | "localv1")[], objects: readonly Raw[]): Promise<void> {
  stateServer = await TestKpngServer.start(protocols);
  for (const raw of objects) upsertRaw(stateServer.store, raw);
  log = new RecordingLog();
  link = open();
}

function open(clock: Clock = systemClock()): NodeLink {
  const opened = new NodeLink({ target: stateServer.target, nodeName: "node1", settings: POD_SETTINGS, log, clock });
  onTestFinished(() => opened.close());
  return opened;
}

const next = (family: IPFamily): Promise<ChangeSet> => link.feed(family).next(new AbortController().signal);

async function rowsOver(family: IPFamily): Promise<ReadonlyMap<string, ServicePort>> {
  const changes = await next(family);
  expect(changes.full).toBe(true);
  return applyChangeSet(new Map(), changes);
}

const dualIPs = { clusterIP: "10.96.0.20", clusterIPs: ["10.96.0.20", "fd00:96::20"] };
const six = { addressType: "IPv6", name: "dual-6" };

/** A Service of every kind. */
const SHOWCASE: readonly Raw[] = [
  rawNode("node1", { zone: "a" }),
  rawNode("node2", { zone: "b" }),
  rawService("plain", { clusterIP: "10.96.0.1" }),
  rawSlice("plain", [
    { ip: "10.1.1.1", node: "node1", pod: "plain-a" },
    { ip: "10.1.2.1", node: "node2", pod: "plain-b" },
  ]),
  rawService("bare", { clusterIP: "10.96.0.2" }),
  rawService("ports", {
    clusterIP: "10.96.0.3",
    ports: [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns-tcp", port: 53, protocol: "TCP" },
      { name: "sctp", port: 99, protocol: "SCTP" },
    ],
  }),
  rawSlice("ports", [{ ip: "10.1.1.3", node: "node1", pod: "ports-a" }], {
    ports: [
      { name: "dns", port: 1053, protocol: "UDP" },
      { name: "dns-tcp", port: 1054, protocol: "TCP" },
      { name: "sctp", port: 1099, protocol: "SCTP" },
      { name: "other", port: 7, protocol: "TCP" },
    ],
  }),
  rawService("unnamed", { clusterIP: "10.96.0.4", ports: [{ port: 80 }] }),
  rawSlice("unnamed", [{ ip: "10.1.1.4", node: "node1", pod: "unnamed-a" }], { ports: [{ name: "", port: 8080 }] }),
  rawService("uneven", { clusterIP: "10.96.0.5", ports: [{ port: 80 }] }),
  rawSlice("uneven", [{ ip: "10.1.1.5", node: "node1", pod: "uneven-a" }], { name: "uneven-1", ports: [{ name: "", port: 8080 }] }),
  rawSlice("uneven", [{ ip: "10.1.2.5", node: "node2", pod: "uneven-b" }], { name: "uneven-2", ports: [{ name: "", port: 9090 }] }),
  rawService(
    "outside",
    {
      type: "LoadBalancer",
      clusterIP: "10.96.0.6",
      externalTrafficPolicy: "Local",
      healthCheckNodePort: 31_000,
      ports: [{ name: "http", port: 80, nodePort: 30_080 }],
      externalIPs: ["192.0.2.6"],
      loadBalancerSourceRanges: ["198.51.100.0/24", "203.0.113.0/24"],
    },
    { ingress: [{ ip: "192.0.2.66" }, { ip: "192.0.2.67" }] },
  ),
  rawSlice("outside", [
    { ip: "10.1.1.6", node: "node1", pod: "outside-a" },
    { ip: "10.1.2.6", node: "node2", pod: "outside-b" },
  ]),
  rawService("node-port", { type: "NodePort", clusterIP: "10.96.0.7", ports: [{ name: "http", port: 80, nodePort: 30_081 }] }),
  rawSlice("node-port", [{ ip: "10.1.2.7", node: "node2", pod: "np-b" }]),
  rawService("inside", { clusterIP: "10.96.0.8", internalTrafficPolicy: "Local" }),
  rawSlice("inside", [
    { ip: "10.1.1.8", node: "node1", pod: "inside-a" },
    { ip: "10.1.2.8", node: "node2", pod: "inside-b" },
  ]),
  rawService("sticky", {
    clusterIP: "10.96.0.9",
    sessionAffinity: "ClientIP",
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 77 } },
  }),
  rawSlice("sticky", [{ ip: "10.1.1.9", node: "node1", pod: "sticky-a" }]),
  rawService("dual", dualIPs),
  rawSlice("dual", [{ ip: "10.1.1.20", node: "node1", pod: "dual-a" }]),
  rawSlice(
    "dual",
    [
      { ip: "fd00:1::20", node: "node1", pod: "dual-a" },
      { ip: "fd00:1::21", node: "node2", pod: "dual-b" },
    ],
    six,
  ),
  rawService("zoned", { clusterIP: "10.96.0.11", type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30_082 }] }),
  rawSlice("zoned", [
    { ip: "10.1.1.11", node: "node1", pod: "zoned-a", zones: ["b"] },
    { ip: "10.1.2.11", node: "node2", pod: "zoned-b", zones: ["a"] },
  ]),
  rawService("zoned-outside", {
    type: "NodePort",
    clusterIP: "10.96.0.12",
    externalTrafficPolicy: "Local",
    ports: [{ name: "http", port: 80, nodePort: 30_083 }],
  }),
  rawSlice("zoned-outside", [
    { ip: "10.1.1.12", node: "node1", pod: "zo-a", zones: ["b"] },
    { ip: "10.1.2.12", node: "node2", pod: "zo-b", zones: ["a"] },
  ]),
  rawService("headless", { clusterIP: "None" }),
];

/** What globalv1 says of a row: everything but its age, and the state of what is not ready. */
function asGlobal(row: ServicePort): unknown {
  const endpoints = row.endpoints.map(({ ip, port, nodeName, isLocal, ready }) => ({ ip, port, nodeName, isLocal, ready }));
  return { ...row, createdMs: 0, endpoints };
}

/** What localv1 says of a row: where packets go, and what of the Service decides it. */
function asLocal(row: ServicePort): unknown {
  const named = (pool: readonly number[]): readonly string[] =>
    pool.map((index) => `${row.endpoints[index]?.ip}:${row.endpoints[index]?.port}`);
  const { key, destinations, affinitySeconds, internalLocal, externalLocal, healthCheck } = row;
  return {
    key,
    destinations,
    affinitySeconds,
    internalLocal,
    externalLocal,
    healthCheck,
    cluster: named(row.cluster),
    local: named(row.local),
  };
}

const by = (rows: ReadonlyMap<string, ServicePort>, view: (row: ServicePort) => unknown): unknown =>
  [...rows.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1)).map(view);

describe("from our store over kpng's protocol to our rows", () => {
  test("globalv1 gives the rows of the store itself, in both families", async () => {
    await follow(["globalv1", "localv1"], SHOWCASE);
    for (const family of FAMILIES) {
      const direct = rowsOf(SHOWCASE, { family });
      expect(direct.size).toBeGreaterThan(0);
      expect(by(await rowsOver(family), asGlobal)).toEqual(by(direct, asGlobal));
    }
    expect(linesOf(log, "warn")).toEqual([
      "warn the node-state server speaks kpng's globalv1 and no turnout.node.v1; some of what Services say is lost",
    ]);
  });

  test("localv1 gives the pools and rules that our node-state server chose", async () => {
    await follow(["localv1"], SHOWCASE);
    for (const family of FAMILIES) {
      const direct = rowsOf(SHOWCASE, { family });
      expect(by(await rowsOver(family), asLocal)).toEqual(by(direct, asLocal));
    }
    expect(linesOf(log, "warn")).toEqual([
      "warn the node-state server speaks kpng's localv1 and no turnout.node.v1; some of what Services say is lost",
    ]);
  });

  test.each(["globalv1", "localv1"] as const)("%s: one change is one row, and noise is none", async (protocol) => {
    await follow([protocol], SHOWCASE);
    await rowsOver("IPv4");
    upsertRaw(stateServer.store, rawNode("node3"));
    upsertRaw(stateServer.store, rawSlice("plain", [{ ip: "10.1.1.99", node: "node1", pod: "plain-a" }]));
    const { full, set, delete: gone } = await next("IPv4");
    expect([full, gone, set.map(({ key, endpoints }) => [key, endpoints.map(({ ip }) => ip)])]).toEqual([
      false,
      [],
      [["shop/plain:http/TCP", ["10.1.1.99"]]],
    ]);
    stateServer.store.remove("Service", "shop", "plain");
    expect((await next("IPv4")).delete).toEqual(["shop/plain:http/TCP"]);
  });

  test("terminating endpoints serve over localv1, where the node-state server falls back to them, and are lost over globalv1", async () => {
    const ending = { ready: false, serving: true, terminating: true };
    const objects = [rawService("ending", { clusterIP: "10.96.0.1" }), rawSlice("ending", [{ ip: "10.1.1.1", ...ending }])];
    await follow(["localv1"], objects);
    expect([...(await rowsOver("IPv4")).values()][0]?.cluster).toEqual([0]);
    stateServer.stop();
    await stateServer.serve(["globalv1", "localv1"]);
    const { full, set } = await next("IPv4");
    expect([full, set[0]?.cluster, set[0]?.destinations[0]?.rules]).toEqual([
      true,
      [],
      [{ from: "anyone", to: "reject", masquerade: false }],
    ]);
  });

  test.each(["globalv1", "localv1"] as const)(
    "%s: the older of two Services has their address, though no age is told",
    async (protocol) => {
      const young = rawService("a-thief", { clusterIP: "10.96.0.66", externalIPs: ["10.96.0.1"] });
      await follow([protocol], [young, rawService("owner", { clusterIP: "10.96.0.1" }, { created: "2020-01-01T00:00:00Z" })]);
      const rows = await rowsOver("IPv4");
      const addressesOf = (key: string): unknown => rows.get(key)?.destinations.map(({ address }) => address);
      expect([addressesOf("shop/a-thief:http/TCP"), addressesOf("shop/owner:http/TCP")]).toEqual([["10.96.0.66"], ["10.96.0.1"]]);
    },
  );

  test.each(["globalv1", "localv1"] as const)("%s: a node-state server that was away costs what changed meanwhile", async (protocol) => {
    await follow([protocol], SHOWCASE);
    await rowsOver("IPv4");
    const waiting = next("IPv4");
    stateServer.stop();
    stateServer.store.remove("Service", "shop", "sticky");
    await stateServer.serve([protocol]);
    const { full, set, delete: gone } = await waiting;
    expect([full, set, gone]).toEqual([false, [], ["shop/sticky:http/TCP"]]);
  });

  test("a node-state server that begins anew with a part of what there is takes nothing away, and goes on from what it tells then", async () => {
    await follow(["globalv1"], SHOWCASE);
    await link.close();
    const clock = new TestClock();
    link = open(clock);
    await rowsOver("IPv4");
    const waiting = next("IPv4");
    stateServer.stop();
    for (const key of stateServer.store.serviceKeys())
      if (key !== "shop/plain") stateServer.store.remove("Service", "shop", key.slice("shop/".length));
    await stateServer.serve(["globalv1"]);
    await eventually(async () => {
      await clock.advance(100);
      return linesOf(log, "info").some((line) => line.includes("sent less than before"));
    });
    for (const raw of SHOWCASE) upsertRaw(stateServer.store, raw);
    upsertRaw(stateServer.store, rawService("late", { clusterIP: "10.96.0.77" }));
    const { full, set, delete: gone } = await waiting;
    expect([full, set.map(({ key }) => key), gone]).toEqual([false, ["shop/late:http/TCP"], []]);
  });

  test("a node-state server with neither protocol is refused as one that speaks something else", async () => {
    await follow([], []);
    const strict = new NodeLink({ target: stateServer.target, nodeName: "node1", failOnRefusal: true });
    await expect(strict.feed("IPv4").next(new AbortController().signal)).rejects.toMatchObject({
      code: "host_unsupported",
      hint: expect.stringContaining("turnout.node.v1") as string,
    });
    await strict.close();
  });

  test("a node-state server that learns the node-state API is followed by that, from its whole state, and back", async () => {
    await follow(["globalv1"], SHOWCASE);
    await rowsOver("IPv4");
    let waiting = next("IPv4");
    stateServer.stop();
    const grown = await TestStateServer.start({ listen: [stateServer.target] });
    upsertRaw(grown.store, rawService("plain", { clusterIP: "10.96.0.1" }));
    let { full, set } = await waiting;
    expect([full, set.map(({ key, createdMs }) => [key, createdMs > 0])]).toEqual([true, [["shop/plain:http/TCP", true]]]);
    waiting = next("IPv4");
    await grown.server?.close();
    await stateServer.serve(["globalv1"]);
    ({ full, set } = await waiting);
    expect([full, set.length]).toEqual([true, rowsOf(SHOWCASE).size]);
    expect(linesOf(log, "warn").filter((line) => line.includes("speaks kpng's"))).toHaveLength(2);
  });

  test("the node is eligible while the node-state server knows it, and its own address is what it is told to be", async () => {
    await follow(["globalv1"], []);
    const options = { target: stateServer.target, nodeName: "node1", bindAddress: "172.18.0.9", clock: systemClock() };
    const reported: boolean[] = [];
    const own = new NodeLink({ ...options, onEligibility: ({ isEligible }) => void reported.push(isEligible) });
    const feed = own.feed("IPv4");
    expect((await feed.next(new AbortController().signal)).node?.addresses).toEqual(["172.18.0.9"]);
    expect(own.eligibility.isEligible).toBe(false);
    upsertRaw(stateServer.store, rawNode("node1"));
    await eventually(() => own.eligibility.isEligible);
    stateServer.store.remove("Node", "", "node1");
    await eventually(() => !own.eligibility.isEligible);
    expect(reported.slice(-2)).toEqual([true, false]);
    await own.close();
  });

  test.each(["globalv1", "localv1"] as const)("%s: a relay asks it for each node, and serves what it says", async (protocol) => {
    await follow([protocol], SHOWCASE);
    const clock = systemClock();
    const relay = await TestStateServer.start();
    await relay.server?.close();
    await relay.serve({ provider: createRelayProvider({ target: stateServer.target, version: "relay", clock, log }) });
    for (const nodeName of ["node1", "node2"]) {
      const own = new NodeLink({ target: relay.target, nodeName, settings: POD_SETTINGS, log: new RecordingLog(), clock });
      const { set } = await own.feed("IPv4").next(new AbortController().signal);
      const rows = new Map(set.map((row) => [row.key, row]));
      expect(by(rows, asLocal)).toEqual(by(rowsOf(SHOWCASE, { nodeName }), asLocal));
      await own.close();
    }
    const watcher = new KpngWatcher(relay.target);
    watcher.ask("node1");
    expect(await watcher.fate()).toMatch(/^12 /);
  });
});
