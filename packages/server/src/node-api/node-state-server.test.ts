import { encodeRow, PACKED_ROWS, type Delivery } from "@turnout/client/protocol";
import { rawNode, rawService, rawSlice, upsertRaw } from "@turnout/core/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { TestStateServer, type RawWatcher } from "../test-support/state-server.ts";
import { eventually } from "../test-support/world.ts";

let stateServer: TestStateServer;
beforeEach(async () => {
  stateServer = await TestStateServer.start();
});

describe("a node-state server's first answer", () => {
  test("is the whole state, with the node, in each family", async () => {
    upsertRaw(stateServer.store, rawNode("node1", { zone: "a", addresses: ["172.18.0.1", "fd00::1"] }));
    stateServer.service(1, "node1");
    const watcher = await stateServer.watch();
    const first = await watcher.next("IPv4");
    expect(first.changes).toMatchObject({ family: "IPv4", full: true, node: { name: "node1", zone: "a", addresses: ["172.18.0.1"] } });
    expect(first.changes.set.map(({ key, local }) => [key, local])).toEqual([["shop/s1:http/TCP", []]]);
    expect(first.changes.set[0]?.endpoints[0]).toMatchObject({ ip: "10.1.0.1", isLocal: true });
    expect(first.eligibility).toEqual({ isEligible: true, reason: "" });
    watcher.ask("IPv6");
    const second = await watcher.delivery();
    expect(second.changes).toMatchObject({ family: "IPv6", full: true, set: [], node: { addresses: ["fd00::1"] } });
  });

  test("comes for an empty cluster too, and to a node nobody has heard of", async () => {
    const { changes, eligibility } = await (await stateServer.watch({ nodeName: "elsewhere" })).next();
    expect(changes).toMatchObject({ full: true, set: [], delete: [], node: { name: "elsewhere", addresses: [] } });
    expect(eligibility).toEqual({ isEligible: false, reason: "this node's Node object is unknown" });
  });

  test("waits until the lists are complete, and not longer", async () => {
    stateServer = await TestStateServer.start({ isSynced: false });
    const watcher = await stateServer.watch();
    watcher.ask();
    stateServer.service(1);
    await eventually(() => watcher.received.length === 1);
    stateServer.service(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(watcher.deliveries).toEqual([]);
    stateServer.sync();
    expect((await watcher.delivery()).changes.set).toHaveLength(2);
  });
});

describe("what changes after that", () => {
  test("costs what changed: rows set and rows deleted", async () => {
    for (let index = 0; index < 20; index++) stateServer.service(index);
    const watcher = await stateServer.watch();
    expect((await watcher.next()).changes.set).toHaveLength(20);
    stateServer.service(3, "node9", "10.1.9.9");
    stateServer.store.remove("Service", "shop", "s4");
    const { changes } = await watcher.next();
    expect(changes).toMatchObject({ full: false, delete: ["shop/s4:http/TCP"] });
    expect(changes.set.map(({ endpoints }) => endpoints[0]?.ip)).toEqual(["10.1.9.9"]);
    expect(changes).not.toHaveProperty("node");
  });

  test("a node that is drained is told without a row", async () => {
    upsertRaw(stateServer.store, rawNode("node1"));
    const watcher = await stateServer.watch();
    await watcher.next();
    upsertRaw(stateServer.store, rawNode("node1", { taints: [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }] }));
    const { changes, eligibility } = await watcher.next();
    expect(eligibility).toMatchObject({ isEligible: false });
    expect(changes).toMatchObject({ full: false, set: [], delete: [] });
    expect(changes).not.toHaveProperty("node");
  });
});

describe("a watcher that comes back", () => {
  test("gets what changed meanwhile, and at once", async () => {
    for (let index = 0; index < 20; index++) stateServer.service(index);
    const before = await stateServer.watch();
    const { changes: held } = await before.next();
    before.stream.cancel();
    await eventually(() => stateServer.server?.stats.streams === 0);
    stateServer.service(3, "node9", "10.1.9.9");
    const after = await stateServer.watch();
    after.ask("IPv4", held.instance, held.revision);
    const { changes } = await after.delivery();
    expect(changes).toMatchObject({ full: false, instance: held.instance });
    expect(changes.set).toHaveLength(1);
  });

  test("to nothing new is not answered; asking without a cursor is answered in full", async () => {
    stateServer.service(1);
    const watcher = await stateServer.watch();
    const { changes } = await watcher.next();
    const again = await stateServer.watch();
    again.ask("IPv4", changes.instance, changes.revision);
    again.ask("IPv6");
    expect((await again.delivery()).changes.family).toBe("IPv6");
    watcher.ask();
    expect((await watcher.delivery()).changes).toMatchObject({ full: true, revision: changes.revision });
    expect(again.deliveries).toHaveLength(1);
  });

  test.each([
    ["another instance", "someone-else", 1],
    ["a revision of the future", undefined, 99],
  ])("with %s gets everything", async (_name, instance, revision) => {
    stateServer.service(1);
    const watcher = await stateServer.watch();
    const { changes } = await watcher.next();
    watcher.ask("IPv4", instance ?? changes.instance, revision);
    expect((await watcher.delivery()).changes).toMatchObject({ full: true, set: [{ key: "shop/s1:http/TCP" }] });
  });

  test("later than views are kept gets everything, under another instance", async () => {
    stateServer.service(1);
    const before = await stateServer.watch();
    const { changes: held } = await before.next();
    before.stream.cancel();
    await eventually(() => stateServer.server?.stats.streams === 0);
    expect(stateServer.server?.stats.questions).toBe(1);
    stateServer.clock.advance(120_000);
    await eventually(() => stateServer.server?.stats.questions === 0);
    const after = await stateServer.watch();
    after.ask("IPv4", held.instance, held.revision);
    const { changes } = await after.delivery();
    expect(changes.full).toBe(true);
    expect(changes.instance).not.toBe(held.instance);
  });
});

test("a node-state server that closed keeps nothing for whoever watched", async () => {
  stateServer = await TestStateServer.start();
  const { server } = stateServer;
  await (await stateServer.watch()).next();
  await server?.close();
  await eventually(() => server?.stats.streams === 0);
  expect(server?.stats.questions).toBe(0);
});

describe("who reads packed rows", () => {
  const packedIn = ({ received }: RawWatcher): number =>
    received.reduce((sum, { response }) => {
      const packed = response?.$case === "changeSet" ? response.value.packed : [];
      return sum + packed.reduce((rows, one) => rows + one.rows, 0);
    }, 0);
  const keysOf = ({ changes }: Delivery): readonly string[] => changes.set.map(({ key }) => key).toSorted();

  test("gets the state that others get row by row, with its own rows in it, for a part of the work", async () => {
    for (let index = 0; index < 100; index++) stateServer.service(index, index === 7 ? "node1" : "node9");
    const [plain, one, two] = await Promise.all([
      stateServer.watch(),
      stateServer.watch({ capabilities: [PACKED_ROWS, "some other word"] }),
      stateServer.watch({ nodeName: "node2", capabilities: [PACKED_ROWS] }),
    ]);
    const [whole, mine] = [await plain.next(), await one.next()];
    const encoded = stateServer.server?.stats.rowsEncoded ?? 0;
    const theirs = await two.next();
    expect(stateServer.server?.stats.rowsEncoded).toBe(encoded);
    expect([plain, one, two].map(packedIn)).toEqual([0, 100, 100]);
    expect(new Map(mine.changes.set.map((row) => [row.key, row]))).toEqual(new Map(whole.changes.set.map((row) => [row.key, row])));
    expect(keysOf(theirs)).toEqual(keysOf(whole));
    const local = (delivery: Delivery): readonly string[] =>
      delivery.changes.set.filter(({ endpoints }) => endpoints.some(({ isLocal }) => isLocal)).map(({ key }) => key);
    expect([mine, theirs].map(local)).toEqual([["shop/s7:http/TCP"], []]);
    expect(stateServer.server?.stats).toMatchObject({ fullStates: 3, operations: 300 });
    stateServer.service(3, "node9", "10.1.9.9");
    expect((await one.next()).changes).toMatchObject({ full: false, set: [{ key: "shop/s3:http/TCP" }] });
    expect(packedIn(one)).toBe(100);
  });

  test("gets rows as they are where nobody else wants them", async () => {
    stateServer.service(1);
    const watcher = await stateServer.watch({ capabilities: [PACKED_ROWS] });
    expect((await watcher.next()).changes.set).toHaveLength(1);
    expect(packedIn(watcher)).toBe(0);
  });
});

describe("many watchers", () => {
  test("of one node share one view and its bytes", async () => {
    for (let index = 0; index < 30; index++) stateServer.service(index, "node1");
    const watchers = await Promise.all(Array.from({ length: 10 }, () => stateServer.watch()));
    await eventually(() => stateServer.server?.stats.streams === 10);
    await Promise.all(watchers.map((watcher) => watcher.next()));
    const sent = { changeSets: 10, fullStates: 10, operations: 300 };
    expect(stateServer.server?.stats).toMatchObject({ ...sent, streams: 10, questions: 1, rowsEncoded: 30 });
    stateServer.service(1, "node1", "10.1.9.9");
    const all = await Promise.all(watchers.map((watcher) => watcher.next()));
    expect(all.map(({ changes }) => changes.set.length)).toEqual(Array(10).fill(1));
    expect(stateServer.server?.stats).toMatchObject({ changeSets: 20, fullStates: 10, operations: 310, rowsEncoded: 31 });
  });

  test("that come at once get their own node's state each, in parts whose memory they share", async () => {
    const [services, nodes] = [1_500, 20];
    for (let index = 0; index < services; index++) stateServer.service(index, `node${index % nodes}`);
    const watchers = await Promise.all(Array.from({ length: nodes }, (_, index) => stateServer.watch({ nodeName: `node${index}` })));
    const all = await Promise.all(watchers.map((watcher) => watcher.next()));
    for (const [node, { changes }] of all.entries()) {
      const local = changes.set.filter(({ endpoints }) => endpoints[0]?.isLocal).map(({ name }) => Number(name.name.slice(1)) % nodes);
      expect([changes.set.length, local]).toEqual([services, Array(services / nodes).fill(node)]);
      expect(watchers[node]?.received.length).toBeGreaterThan(2);
    }
  });

  test("of different nodes share the bytes of rows without an endpoint on either", async () => {
    for (let index = 0; index < 30; index++) stateServer.service(index, index === 0 ? "node1" : "node9");
    const one = await stateServer.watch({ nodeName: "node1" });
    const two = await stateServer.watch({ nodeName: "node2" });
    await eventually(() => stateServer.server?.stats.streams === 2);
    const [first, second] = [await one.next(), await two.next()];
    expect(stateServer.server?.stats).toMatchObject({ questions: 2, rowsEncoded: 31 });
    expect(first.changes.set.filter(({ endpoints }) => endpoints[0]?.isLocal)).toHaveLength(1);
    expect(second.changes.set.filter(({ endpoints }) => endpoints[0]?.isLocal)).toHaveLength(0);
  });

  test("with other addresses of their own have other views, computed with those", async () => {
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.1"] }));
    const addresses: (readonly string[] | undefined)[] = [];
    for (const bindAddress of ["", "192.0.2.7", "192.0.2.8"]) {
      const { changes } = await (await stateServer.watch({ bindAddress })).next();
      addresses.push(changes.node?.addresses);
    }
    expect(addresses).toEqual([["172.18.0.1"], ["192.0.2.7", "172.18.0.1"], ["192.0.2.8", "172.18.0.1"]]);
  });

  test("with other settings have other views, computed with those", async () => {
    upsertRaw(stateServer.store, rawService("web", { type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }] }));
    upsertRaw(stateServer.store, rawSlice("web", [{ ip: "10.1.0.1" }]));
    const settings = {
      masqueradeAll: true,
      masqueradeBit: 3,
      detectLocal: { mode: { $case: "nodeCidr" as const, value: {} } },
      nodePortAddresses: undefined,
    };
    const [usual, other] = [await stateServer.watch(), await stateServer.watch({ settings })];
    const rows = [(await usual.next()).changes.set[0]!, (await other.next()).changes.set[0]!];
    expect(rows.map(({ destinations }) => destinations[0]?.rules.map(({ from, masquerade }) => [from, masquerade]))).toEqual([
      [
        ["offCluster", true],
        ["anyone", false],
      ],
      [["anyone", true]],
    ]);
    expect(stateServer.server?.stats.questions).toBe(2);
    expect(encodeRow(rows[0]!)).not.toEqual(encodeRow(rows[1]!));
  });
});
