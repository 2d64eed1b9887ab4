import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyChangeSet, isEqual, NodeView, OBJECT_KINDS, ServiceTable, Store } from "@turnout/core";
import type { IPFamily, Issue, NodeContext, NodeSettings, ObjectKind, ServicePort, TableView, TableViewOptions } from "@turnout/core";
import { createRandom, pickOne, POD_SETTINGS, rawNode, rawService, rawServiceCIDR, rawSlice, upsertRaw } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { changedWorld, randomWorld } from "./test-support/random-world.ts";

const HTTP = ":http/TCP";

/** A synced store with a table of one family and views of nodes on it. */
function tableOf(objects: readonly RawObject[], nodes: readonly string[] = ["node1"], changesKept?: number) {
  const store = new Store();
  const issues: Issue[] = [];
  for (const raw of objects) upsertRaw(store, raw);
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  const table = new ServiceTable(store, { family: "IPv4", report: (issue) => void issues.push(issue), changesKept });
  const watchers = nodes.map((nodeName) => new Watcher(table, table.view({ nodeName, settings: POD_SETTINGS })));
  return { store, table, issues, watchers };
}

/** Somebody who holds what it was told last. */
class Watcher {
  rows: ReadonlyMap<string, ServicePort> = new Map();
  node: NodeContext | undefined;
  revision: number | undefined;
  readonly #table: ServiceTable;
  readonly view: TableView;

  constructor(table: ServiceTable, view: TableView) {
    this.#table = table;
    this.view = view;
  }

  /** Take what there is; undefined when there is nothing. */
  look(): ReturnType<TableView["changesSince"]> {
    if (!this.#table.update()) return undefined;
    const changes = this.view.changesSince(this.revision);
    if (changes === undefined) return undefined;
    this.rows = applyChangeSet(this.rows, { ...changes, instance: "", family: "IPv4" });
    this.node = changes.node ?? this.node;
    this.revision = changes.revision;
    return changes;
  }

  /** Somebody who held this, then was away. */
  clone(): Watcher {
    return Object.assign(new Watcher(this.#table, this.view), { rows: this.rows, node: this.node, revision: this.revision });
  }
}

/** Everything, as who takes packed rows gets it. */
function everythingApart(view: TableView): ReadonlyMap<string, ServicePort> {
  const { set = [], shared = [] } = view.changesSince(undefined, true) ?? {};
  return new Map([...shared.flat(), ...set].map((row) => [row.key, row]));
}

function sorted(rows: ReadonlyMap<string, ServicePort>): readonly (readonly [string, ServicePort])[] {
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function idOf(raw: RawObject): string {
  const { namespace = "", name } = raw["metadata"] as { readonly namespace?: string; readonly name: string };
  return `${String(raw["kind"])} ${namespace} ${name}`;
}

/** Change a store that holds `from` so that it holds `to`. */
function move(store: Store, from: readonly RawObject[], to: readonly RawObject[]): void {
  const kept = new Set(to.map(idOf));
  for (const raw of from) {
    const [kind = "", namespace = "", name = ""] = idOf(raw).split(" ");
    if (!kept.has(idOf(raw))) store.remove(kind as ObjectKind, namespace, name);
  }
  for (const raw of to) if (!from.includes(raw)) upsertRaw(store, raw);
}

function randomNode(random: () => number): RawObject {
  const zone = pickOne(["a", "b", "c", undefined], random);
  const addresses = pickOne([["172.18.0.1", "fd00:18::1"], ["203.0.113.7", "198.51.100.1"], ["192.168.7.1", "fd00:203::7"], []], random);
  const podCIDRs = pickOne([["10.1.1.0/24", "fd00:1:1::/64"], undefined], random);
  const name = pickOne(["node1", "node2", "node3"], random);
  return rawNode(name, { addresses, ...(zone === undefined ? {} : { zone }), ...(podCIDRs === undefined ? {} : { podCIDRs }) });
}

/** Play a random history; throws at the first look that does not find what a fresh view of the store has. */
function execute(seed: number, changesKept: number, family: IPFamily): void {
  const random = createRandom(seed);
  const settingsOf = (): NodeSettings => randomWorld(random).settings;
  const [usual, other] = [settingsOf(), settingsOf()];
  const store = new Store({ allowedAddresses: { strictExternalIPs: random() < 0.3 } });
  const table = new ServiceTable(store, { family, changesKept });
  const options: readonly TableViewOptions[] = [
    { nodeName: "node1", settings: usual },
    { nodeName: "node2", settings: usual },
    { nodeName: "node3", settings: other, bindAddress: "203.0.113.9" },
    { nodeName: "node1", settings: other },
  ];
  const watchers = options.map((one) => new Watcher(table, table.view(one)));
  const away: (readonly [number, Watcher])[] = [];
  let world = randomWorld(random);
  move(store, [], world.objects);
  expect(watchers[0]?.look()).toBeUndefined();
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  const check = (index: number, watcher: Watcher): void => {
    watcher.look();
    const truth = new NodeView(store, { ...(options[index] as TableViewOptions), family });
    const full = truth.pull();
    truth.close();
    expect(sorted(watcher.rows)).toEqual(sorted(truth.rows));
    expect(sorted(everythingApart(watcher.view))).toEqual(sorted(truth.rows));
    expect(watcher.node).toEqual(full?.node);
    expect(watcher.look()).toBeUndefined();
  };
  for (let turn = 0; turn < 30; turn++) {
    const next = changedWorld(world, random);
    move(store, world.objects, next.objects);
    world = next;
    if (random() < 0.3) upsertRaw(store, randomNode(random));
    if (random() < 0.1)
      upsertRaw(
        store,
        rawServiceCIDR("main", pickOne([["10.96.0.0/16"], ["10.0.0.0/8", "fd00:96::/112"], ["198.51.100.0/31"], []], random)),
      );
    if (random() < 0.05) store.noteSourceAddresses([pickOne(["198.51.100.2 80", "10.1.2.1 8080", "fd00:198::2 80"], random)]);
    if (random() < 0.1) store.remove("Node", "", pickOne(["node1", "node2", "node3"], random));
    const index = Math.floor(random() * watchers.length);
    const watcher = watchers[index] as Watcher;
    if (random() < 0.5) check(index, watcher);
    if (random() < 0.2 && watcher.revision !== undefined) away.push([index, watcher.clone()]);
  }
  for (const [index, watcher] of watchers.entries()) check(index, watcher);
  for (const [index, watcher] of away) check(index, watcher);
}

describe("R-57, R-73, R-74 views of one table", () => {
  it("have the rows of a fresh full view of the store, on every node, after any history, gap and resume", () => {
    const histories = fc.property(fc.integer(), fc.constantFrom(1, 3, 4_096), fc.constantFrom<IPFamily>("IPv4", "IPv6"), execute);
    fc.assert(histories, { numRuns: 120 });
  });
});

const SERVICES = Array.from({ length: 20 }, (_, index) => [
  rawService(`s${index}`, { clusterIP: `10.96.0.${index + 1}` }),
  rawSlice(`s${index}`, [
    { ip: `10.1.1.${index + 1}`, node: `node${(index % 10) + 1}` },
    { ip: `10.1.2.${index + 1}`, node: "node99" },
  ]),
]).flat();

describe("what nodes share", () => {
  it("rows without an endpoint on the node are the same objects; of the others the node's endpoints alone are its own", () => {
    const { watchers } = tableOf(SERVICES, ["node1", "node2", "node77", "node78"]);
    const [one, two, far, further] = watchers.map((watcher) => {
      watcher.look();
      return watcher.rows;
    });
    for (const [key, row] of far ?? []) expect(further?.get(key)).toBe(row);
    const differing = [...(one ?? [])].filter(([key, row]) => far?.get(key) !== row).map(([key]) => key);
    expect(differing).toEqual([`shop/s0${HTTP}`, `shop/s10${HTTP}`]);
    const [own, common] = [one, two].map((rows) => rows?.get(`shop/s0${HTTP}`)?.endpoints ?? []);
    expect(own?.map(({ isLocal }) => isLocal)).toEqual([true, false]);
    expect(own?.[1]).toBe(common?.[1]);
  });

  it("two views of one node get the same objects, also of its own rows", () => {
    const { watchers } = tableOf(SERVICES, ["node1", "node1"]);
    for (const watcher of watchers) watcher.look();
    for (const [key, row] of watchers[0]?.rows ?? []) expect(watchers[1]?.rows.get(key)).toBe(row);
  });

  it("watchers of one node get one difference, worked out once", () => {
    const { store, watchers } = tableOf(SERVICES, ["node1"]);
    const [watcher] = watchers;
    watcher?.look();
    const others = Array.from({ length: 10 }, () => watcher?.clone());
    upsertRaw(store, rawSlice("s0", [{ ip: "10.1.1.1", node: "node1", ready: false }]));
    const changes = watcher?.look();
    for (const other of others) expect(other?.look()).toBe(changes);
  });

  it("hints share by zone, source ranges by whether they hold the node", () => {
    const hinted = rawSlice("s0", [
      { ip: "10.1.1.1", zones: ["a"] },
      { ip: "10.1.1.2", zones: ["b"] },
    ]);
    const ranged = rawService(
      "s1",
      { type: "LoadBalancer", clusterIP: "10.96.0.2", loadBalancerSourceRanges: ["172.18.0.0/25"] },
      { ingress: [{ ip: "198.51.100.1" }] },
    );
    const nodes = [
      rawNode("node1", { zone: "a", addresses: ["172.18.0.1"] }),
      rawNode("node2", { zone: "a", addresses: ["172.18.0.200"] }),
      rawNode("node3", { zone: "b", addresses: ["172.18.0.3"] }),
      rawNode("node4", { zone: "c", addresses: ["172.18.0.201"] }),
    ];
    const objects = [...nodes, rawService("s0"), hinted, ranged, rawSlice("s1", [{ ip: "10.1.1.3" }])];
    const { watchers } = tableOf(objects, ["node1", "node2", "node3", "node4"]);
    const rows = watchers.map((watcher) => {
      watcher.look();
      return ["s0", "s1"].map((name) => watcher.rows.get(`shop/${name}${HTTP}`));
    });
    const places = (index: number): readonly number[] => rows.map((mine) => rows.findIndex((other) => other[index] === mine[index]));
    expect(places(0)).toEqual([0, 0, 2, 3]);
    expect(places(1)).toEqual([0, 1, 0, 1]);
  });
});

describe("what nodes share, in blocks", () => {
  /** Thirty to a block. */
  const services = (from: number, to: number): readonly RawObject[] =>
    Array.from({ length: to - from }, (_, index) => [
      rawService(`b${from + index}`, { clusterIP: `10.96.${2 + Math.floor((from + index) / 250)}.${(from + index) % 250}` }),
      rawSlice(
        `b${from + index}`,
        Array.from({ length: 50 }, (_none, k) => ({
          ip: `10.${2 + k}.${Math.floor((from + index) / 250)}.${(from + index) % 250}`,
          node: `n${from + index}`,
        })),
      ),
    ]).flat();
  const blocksOf = (watcher: Watcher | undefined) => watcher?.view.changesSince(undefined, true)?.shared ?? [];

  it("is the same object on all nodes, and after a change elsewhere", () => {
    const { store, table, watchers } = tableOf(services(0, 100), ["n1", "n50"]);
    table.update();
    const [before, others] = watchers.map(blocksOf);
    expect(before?.length).toBeGreaterThan(2);
    for (const [index, block] of (others ?? []).entries()) expect(block).toBe(before?.[index]);
    upsertRaw(store, rawSlice("b99", [{ ip: "10.9.9.9" }]));
    table.update();
    const after = blocksOf(watchers[0]);
    expect(after.map((block, index) => block === before?.[index])).toEqual([...(before ?? []).slice(1).map(() => true), false]);
  });

  it("has a node's own rows beside it, and only those", () => {
    const { table, watchers } = tableOf(services(0, 100), ["n7"]);
    table.update();
    expect(watchers[0]?.view.changesSince(undefined, true)?.set.map(({ key }) => key)).toEqual([`shop/b7${HTTP}`]);
  });

  it("is not told apart where most Services know the node", () => {
    const { table, watchers } = tableOf(SERVICES, ["node99"]);
    table.update();
    const changes = watchers[0]?.view.changesSince(undefined, true);
    expect(changes?.shared).toBeUndefined();
    expect(changes?.set).toHaveLength(20);
  });

  it("stays whole and in few blocks when most Services go and others come", () => {
    const { store, table, watchers } = tableOf(services(0, 300), ["n1"]);
    table.update();
    const most = blocksOf(watchers[0]).length;
    for (let index = 0; index < 300; index++) if (index % 30 !== 1) store.remove("Service", "shop", `b${index}`);
    table.update();
    expect(blocksOf(watchers[0]).length).toBeLessThan(most / 3);
    expect([...everythingApart(watchers[0]!.view).keys()].toSorted()).toEqual(
      Array.from({ length: 10 }, (_, index) => `shop/b${index * 30 + 1}${HTTP}`).toSorted(),
    );
    for (const raw of services(300, 500)) upsertRaw(store, raw);
    table.update();
    expect(everythingApart(watchers[0]!.view).size).toBe(210);
  });
});

describe("what a change costs", () => {
  it("one flipped endpoint is one row, on every node; on nobody else's account", () => {
    const { store, watchers } = tableOf(SERVICES, ["node1", "node2", "node77"]);
    for (const watcher of watchers) watcher.look();
    upsertRaw(store, rawSlice("s0", [{ ip: "10.1.1.1", node: "node1", ready: false }]));
    for (const watcher of watchers) expect(watcher.look()).toMatchObject({ full: false, set: [{ key: `shop/s0${HTTP}` }], delete: [] });
  });

  it.each([
    ["every object again", SERVICES],
    ["another node", [rawNode("node5", { zone: "z" })]],
    ["a field nobody reads", [{ ...rawNode("node1"), status: { addresses: [], conditions: [{ type: "Ready" }] } }]],
    ["a slice of no Service", [rawSlice("ghost", [{ ip: "10.1.1.1" }])]],
    ["an address of the other family", [rawService("s0", { clusterIPs: ["10.96.0.1", "fd00:96::1"], clusterIP: "10.96.0.1" })]],
  ])("%s is no change, and no revision", (_name, objects) => {
    const { store, table, watchers } = tableOf(SERVICES, ["node1", "node2"]);
    for (const watcher of watchers) watcher.look();
    for (const raw of objects) upsertRaw(store, raw);
    expect(watchers.map((watcher) => watcher.look())).toEqual([undefined, undefined]);
    expect(table.revision).toBe(1);
  });

  it("a hint that matters in one zone is told there alone", () => {
    const hinted = (zones: readonly string[]): RawObject =>
      rawSlice("s0", [
        { ip: "10.1.1.1", zones: ["a"] },
        { ip: "10.1.1.2", zones },
      ]);
    const nodes = [rawNode("node1", { zone: "a" }), rawNode("node2", { zone: "b" }), rawNode("node3", { zone: "c" })];
    const { store, watchers } = tableOf([...nodes, rawService("s0"), hinted(["b"])], ["node1", "node2", "node3"]);
    for (const watcher of watchers) watcher.look();
    upsertRaw(store, hinted(["b", "c"]));
    expect(watchers.map((watcher) => watcher.look()?.set.length)).toEqual([undefined, undefined, 1]);
  });

  it("an edit undone is no change for whoever did not look between, though others did", () => {
    const { store, watchers } = tableOf(SERVICES, ["node1", "node1"]);
    const [fast, slow] = watchers;
    for (const watcher of watchers) watcher.look();
    upsertRaw(store, rawService("s0", { clusterIP: "10.96.9.9" }));
    expect(fast?.look()?.set).toHaveLength(1);
    upsertRaw(store, rawService("s0", { clusterIP: "10.96.0.1" }));
    expect(fast?.look()?.set).toHaveLength(1);
    expect(slow?.look()).toBeUndefined();
  });

  it("any number of changes while nobody looks is one", () => {
    const { store, watchers } = tableOf(SERVICES);
    watchers[0]?.look();
    for (let last = 2; last < 250; last++) upsertRaw(store, rawSlice("s0", [{ ip: `10.1.9.${last}` }]));
    expect(watchers[0]?.look()?.set.map(({ endpoints }) => endpoints.map(({ ip }) => ip))).toEqual([["10.1.9.249"]]);
    expect(watchers[0]?.look()).toBeUndefined();
  });
});

describe("the node", () => {
  it("R-62 another zone is told with the rows it changes; a node nobody follows is not looked at", () => {
    const hinted = rawSlice("s0", [
      { ip: "10.1.1.1", zones: ["a"] },
      { ip: "10.1.1.2", zones: ["b"] },
    ]);
    const { store, watchers } = tableOf([rawNode("node1", { zone: "a" }), ...SERVICES, hinted], ["node1", "node77"]);
    for (const watcher of watchers) watcher.look();
    upsertRaw(store, rawNode("node1", { zone: "b" }));
    const [here, elsewhere] = watchers.map((watcher) => watcher.look());
    expect(here).toMatchObject({ full: false, node: { zone: "b" }, set: [{ key: `shop/s0${HTTP}` }] });
    expect(elsewhere).toBeUndefined();
  });

  it("that changed and changed back is no change", () => {
    const { store, watchers } = tableOf([rawNode("node1", { zone: "a" }), ...SERVICES], ["node1", "node1"]);
    const [fast, slow] = watchers;
    for (const watcher of watchers) watcher.look();
    for (const zone of ["b", "a"]) {
      upsertRaw(store, rawNode("node1", { zone }));
      expect(fast?.look()?.node?.zone).toBe(zone);
    }
    expect(slow?.look()).toBeUndefined();
  });

  it("that changed more often than is remembered is told in full", () => {
    const { store, watchers } = tableOf([rawNode("node1", { zone: "a" }), ...SERVICES], ["node1", "node1"]);
    const [fast, slow] = watchers;
    for (const watcher of watchers) watcher.look();
    for (let turn = 0; turn < 40; turn++) {
      upsertRaw(store, rawNode("node1", { zone: `z${turn}` }));
      fast?.look();
    }
    expect(slow?.look()).toMatchObject({ full: true, node: { zone: "z39" } });
  });

  it("whose views are closed is followed no more", () => {
    const { store, table, watchers } = tableOf([rawNode("node1", { zone: "a" }), ...SERVICES], ["node1", "node2"]);
    for (const watcher of watchers) watcher.look();
    watchers[0]?.view.close();
    upsertRaw(store, rawNode("node1", { zone: "b" }));
    table.update();
    expect(table.revision).toBe(1);
  });
});

describe("a log at its end", () => {
  it("gives everything to who is further behind than it reaches", () => {
    const { store, table, watchers } = tableOf(SERVICES, ["node1"], 2);
    const [watcher] = watchers;
    watcher?.look();
    const old = watcher?.clone();
    for (let turn = 0; turn < 60; turn++) {
      upsertRaw(store, rawService(`t${turn}`, { clusterIP: `10.96.1.${turn + 1}` }));
      table.update();
    }
    for (let turn = 0; turn < 60; turn++) {
      store.remove("Service", "shop", `t${turn}`);
      watcher?.look();
    }
    expect(old?.look()).toMatchObject({ full: true });
    expect(isEqual([...(old?.rows ?? [])], [...(watcher?.rows ?? [])])).toBe(true);
  });

  it("still knows which rows went, of a Service that changed often", () => {
    const { store, table, watchers } = tableOf(SERVICES, ["node1"], 2);
    const [watcher] = watchers;
    watcher?.look();
    const old = watcher?.clone();
    for (let turn = 0; turn < 200; turn++) {
      upsertRaw(store, rawService("s0", { ports: [{ name: `p${turn % 7}`, port: 80 }] }));
      table.update();
    }
    const changes = old?.look();
    expect(changes?.full).toBe(false);
    expect(changes?.delete).toContain(`shop/s0${HTTP}`);
    expect([...(old?.rows.keys() ?? [])].filter((key) => key.startsWith("shop/s0:"))).toEqual([`shop/s0:p${199 % 7}/TCP`]);
  });
});

describe("R-53 contested addresses", () => {
  const young = rawService("young", { clusterIP: "10.96.0.1" }, { created: "2024-02-01T00:00:00Z" });

  it("are resolved for all nodes at once, reported once, and come back", () => {
    const { store, issues, watchers } = tableOf([rawService("old"), young], ["node1", "node2", "node3"]);
    for (const watcher of watchers) {
      watcher.look();
      expect(watcher.rows.get(`shop/young${HTTP}`)?.destinations).toEqual([]);
    }
    expect(issues).toHaveLength(1);
    store.remove("Service", "shop", "old");
    for (const watcher of watchers) {
      expect(watcher.look()).toMatchObject({ set: [{ key: `shop/young${HTTP}` }], delete: [`shop/old${HTTP}`] });
      expect(watcher.rows.get(`shop/young${HTTP}`)?.destinations).toHaveLength(1);
    }
  });
});

function addressesOf(watcher: Watcher | undefined, name = "thief"): readonly string[] {
  return (watcher?.rows.get(`shop/${name}${HTTP}`)?.destinations ?? []).map(({ address }) => address);
}

describe("R-71 addresses that Services of a namespace share", () => {
  it("pass on for all nodes in one revision when the last usable endpoint goes, and nothing else is looked at; endpoints that change nothing of that are no news to the other Service", () => {
    const shared = { externalIPs: ["198.51.100.9"] };
    const blue = [rawService("blue", { clusterIP: "10.96.1.1", ...shared }), rawSlice("blue", [{ ip: "10.1.1.1" }])];
    const green = rawService("green", { clusterIP: "10.96.1.2", ...shared }, { created: "2024-02-01T00:00:00Z" });
    const { store, issues, watchers } = tableOf([...SERVICES, ...blue, green, rawSlice("green", [{ ip: "10.1.2.1" }])], ["node1", "node2"]);
    const held = (watcher: Watcher): readonly boolean[] =>
      ["blue", "green"].map((name) => addressesOf(watcher, name).includes("198.51.100.9"));
    for (const watcher of watchers) watcher.look();
    const both = [`shop/blue${HTTP}`, `shop/green${HTTP}`];
    for (const isUp of [false, true, false]) {
      upsertRaw(store, rawSlice("blue", isUp ? [{ ip: "10.1.1.1" }] : []));
      for (const watcher of watchers) {
        const keys = watcher.look()?.set.map(({ key }) => key);
        expect([keys?.toSorted(), held(watcher)]).toEqual([both, [isUp, !isUp]]);
      }
    }
    upsertRaw(store, rawSlice("green", [{ ip: "10.1.2.1" }, { ip: "10.1.2.2" }]));
    for (const watcher of watchers) expect(watcher.look()?.set.map(({ key }) => key)).toEqual([`shop/green${HTTP}`]);
    expect(issues.map(({ object }) => object)).toEqual([`Service port shop/green${HTTP}`, `Service port shop/blue${HTTP}`]);
  });
});

describe("what the cluster has of its own", () => {
  const thief = rawService("thief", { clusterIP: "10.96.1.9", externalIPs: ["10.96.1.20", "172.18.0.2"] });

  it("R-64 a range that arrives or goes concerns external IPs inside, and no other row", () => {
    const { store, issues, watchers } = tableOf([...SERVICES, thief], ["node1", "node2"]);
    for (const watcher of watchers) watcher.look();
    upsertRaw(store, rawServiceCIDR("main", ["10.96.0.0/16", "fd00:96::/112"]));
    for (const watcher of watchers) {
      expect(watcher.look()).toMatchObject({ full: false, set: [{ key: `shop/thief${HTTP}` }], delete: [] });
      expect(addressesOf(watcher)).toEqual(["10.96.1.9", "172.18.0.2"]);
    }
    expect(issues).toHaveLength(1);
    store.remove("ServiceCIDR", "", "main");
    for (const watcher of watchers) {
      expect(watcher.look()).toMatchObject({ full: false, set: [{ key: `shop/thief${HTTP}` }], delete: [] });
      expect(addressesOf(watcher)).toEqual(["10.96.1.9", "10.96.1.20", "172.18.0.2"]);
    }
  });

  it("R-65 a Node's address that is somebody's node port concerns who claims it, on every node, until the Node has another, also when it is gone", () => {
    const victim = rawService("victim", { type: "NodePort", clusterIP: "10.96.1.8", ports: [{ name: "http", port: 80, nodePort: 80 }] });
    const { store, watchers } = tableOf([...SERVICES, thief, victim], ["node1", "node2"]);
    for (const watcher of watchers) watcher.look();
    upsertRaw(store, rawNode("node9", { addresses: ["172.18.0.2"] }));
    for (const watcher of watchers) {
      expect(watcher.look()).toMatchObject({ full: false, set: [{ key: `shop/thief${HTTP}` }], delete: [] });
      expect(addressesOf(watcher)).toEqual(["10.96.1.9", "10.96.1.20"]);
    }
    store.remove("Node", "", "node9");
    for (const watcher of watchers) expect(watcher.look()).toBeUndefined();
    upsertRaw(store, rawNode("node9", { addresses: ["172.18.0.9"] }));
    for (const watcher of watchers) {
      expect(watcher.look()).toMatchObject({ full: false, set: [{ key: `shop/thief${HTTP}` }], delete: [] });
      expect(addressesOf(watcher)).toEqual(["10.96.1.9", "10.96.1.20", "172.18.0.2"]);
    }
  });
});

describe("trigger times", () => {
  const triggered = "2024-01-01T00:00:10Z";
  const triggeredMs = 1_704_067_210_000;

  it("go with the change they caused, to each watcher; those of the first state and of no change go nowhere", () => {
    const first = rawSlice("s0", [{ ip: "10.1.1.1" }], { triggered });
    const { store, watchers } = tableOf([rawService("s0"), first, rawService("s1", { clusterIP: "10.96.0.2" })], ["node1", "node2"]);
    for (const watcher of watchers) expect(watcher.look()?.triggersMs).toEqual([]);
    upsertRaw(store, rawSlice("s1", [], { triggered }));
    upsertRaw(store, rawSlice("s0", [{ ip: "10.1.1.2" }], { triggered }));
    for (const watcher of watchers) expect(watcher.look()?.triggersMs).toEqual([triggeredMs]);
    upsertRaw(store, rawSlice("s0", [{ ip: "10.1.1.3" }]));
    for (const watcher of watchers) expect(watcher.look()?.triggersMs).toEqual([]);
  });
});
