import { describe, expect, it } from "vitest";
import { endpointsOfPorts } from "./endpoints.ts";
import type { PortEndpoints } from "./endpoints.ts";
import { rawService, rawSlice } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import type { EndpointSlice, IPFamily, Protocol, Service } from "../model/api-objects.ts";
import { localizedParts, partsFor } from "./service-rows.ts";
import type { ServiceParts } from "./service-rows.ts";
import { Store } from "../state/store.ts";

/** Of one port with one address. */
function endpointsFor(
  slices: ReadonlyMap<string, EndpointSlice>,
  port: { name: string; protocol: Protocol },
  family: IPFamily,
  nodeName: string,
  before?: PortEndpoints,
): PortEndpoints {
  const known = before === undefined ? undefined : [before];
  return endpointsOfPorts(slices, [{ ...port, places: 1 }], family, nodeName, known)[0] as PortEndpoints;
}

function merged(
  slices: readonly RawObject[],
  port: { name: string; protocol: Protocol } = { name: "http", protocol: "TCP" },
): PortEndpoints {
  const store = new Store();
  for (const raw of slices) store.upsert("EndpointSlice", raw);
  return endpointsFor(store.slices("shop/cart"), port, "IPv4", "node1");
}

function texts({ endpoints }: PortEndpoints): readonly string[] {
  return endpoints.map(({ ip, port, terminating }) => `${ip}:${port}${terminating ? " going" : ""}`);
}

describe("R-12 ports match by name and protocol, never by number", () => {
  const ports = [
    { name: "http", port: 8080 },
    { name: "http", port: 8081, protocol: "UDP" },
    { name: "", port: 80 },
  ];
  it.each([
    ["by name", { name: "http", protocol: "TCP" as const }, ["10.1.1.1:8080"]],
    ["same name, other protocol", { name: "http", protocol: "UDP" as const }, ["10.1.1.1:8081"]],
    ["unnamed matches the empty name", { name: "", protocol: "TCP" as const }, ["10.1.1.1:80"]],
    ["unknown name", { name: "https", protocol: "TCP" as const }, []],
    ["unknown protocol", { name: "http", protocol: "SCTP" as const }, []],
  ])("%s", (_name, port, expected) => expect(texts(merged([rawSlice("cart", [{ ip: "10.1.1.1" }], { ports })], port))).toEqual(expected));
});

describe("R-11 slices of the other family contribute nothing", () => {
  it("IPv6 beside IPv4", () => {
    expect(texts(merged([rawSlice("cart", [{ ip: "fd00:1::1" }], { addressType: "IPv6" })]))).toEqual([]);
  });
});

describe("R-15 one ip:port is one endpoint", () => {
  const slice = (name: string, ...endpoints: Parameters<typeof rawSlice>[1]): RawObject => rawSlice("cart", endpoints, { name });
  const stays = { ip: "10.1.1.1" };
  const goes = { ip: "10.1.1.1", ready: false, terminating: true };
  it.each([
    ["within one slice", [slice("a", stays, stays)], ["10.1.1.1:8080"]],
    ["across slices", [slice("a", stays), slice("b", stays)], ["10.1.1.1:8080"]],
    ["the one that stays wins over an earlier terminating one", [slice("a", goes), slice("b", stays)], ["10.1.1.1:8080"]],
    ["and over a later one", [slice("a", stays), slice("b", goes)], ["10.1.1.1:8080"]],
    ["within one slice too", [slice("a", goes, stays)], ["10.1.1.1:8080"]],
    ["two terminating ones", [slice("a", goes), slice("b", goes)], ["10.1.1.1:8080 going"]],
    ["written differently", [slice("a", { ip: "10.1.1.1" }), slice("b", { ip: "010.001.001.001" })], ["10.1.1.1:8080"]],
  ])("%s", (_name, slices, expected) => expect(texts(merged(slices))).toEqual(expected));

  /** How an entry's conditions may be, the better before the worse. */
  const RANKS = [
    { ready: true },
    { ready: true, terminating: true },
    { ready: false, serving: true, terminating: true },
    { ready: false, serving: true },
  ] as const;
  const NAMES = [
    ["a", "b"],
    ["b", "a"],
  ] as const;
  const RANK_PAIRS = RANKS.slice(1).flatMap((worse, index) =>
    NAMES.map(([first, second]) => ({ better: RANKS[index] as object, worse, first, second })),
  );
  it.each(RANK_PAIRS)("$better in slice $first comes before $worse in $second, wherever both are", ({ better, worse, first, second }) => {
    const here = slice(second, { ip: "10.1.1.1", node: "node1", ...worse });
    const found = merged([slice(first, { ip: "10.1.1.1", node: "node2", ...better }), here]);
    expect(found.endpoints).toHaveLength(1);
    expect(found.endpoints[0]).toMatchObject({ nodeName: "node2", terminating: false, ...better });
  });

  const T1 = "2026-01-01T10:00:00Z";
  const T2 = "2026-01-01T10:00:05Z";
  const on = (name: string, node: string, triggered: string): RawObject =>
    rawSlice("cart", [{ ip: "10.1.1.1", node }], { name, triggered });
  it.each(NAMES)("a tie goes to this node's entry, then to the newer change: slices %s and %s", (first, second) => {
    const nodeOf = (...slices: readonly RawObject[]): unknown =>
      merged(slices).endpoints.map(({ nodeName, isLocal }) => [nodeName, isLocal]);
    expect(nodeOf(on(first, "node1", T1), on(second, "node2", T2))).toEqual([["node1", true]]);
    expect(nodeOf(on(first, "node3", T1), on(second, "node2", T2))).toEqual([["node2", false]]);
  });

  it("a tie goes to each node's own entry where one table serves all nodes", () => {
    const store = new Store();
    store.upsert("Service", rawService("cart", {}));
    for (const raw of [
      on("a", "node1", T1),
      on("b", "node2", T2),
      rawSlice("cart", [{ ip: "10.1.1.1", node: "node3", ready: false }], { name: "c" }),
    ])
      store.upsert("EndpointSlice", raw);
    const service = store.service("shop/cart") as Service;
    const shared = partsFor(service, store.slices("shop/cart"), "IPv4", "") as ServiceParts;
    for (const node of ["node1", "node2", "node3"]) {
      const { portEndpoints } = partsFor(service, store.slices("shop/cart"), "IPv4", node) as ServiceParts;
      expect(localizedParts(shared, node).portEndpoints.map(({ endpoints }) => endpoints)).toEqual(
        portEndpoints.map(({ endpoints }) => endpoints),
      );
    }
    expect(localizedParts(shared, "node1").portEndpoints[0]?.endpoints).toMatchObject([{ nodeName: "node1", isLocal: true }]);
  });

  it("among a node's own entries of one moment the last one counts there too, with its hints, where one table serves all nodes", () => {
    const store = new Store();
    store.upsert("Service", rawService("cart", {}));
    const hinted = (name: string, zone: string): RawObject =>
      rawSlice("cart", [{ ip: "10.1.1.1", node: "node1", zones: [zone] }], { name, triggered: T1 });
    for (const raw of [hinted("a", "a"), hinted("b", "b"), on("c", "node2", T2)]) store.upsert("EndpointSlice", raw);
    const partsAt = (node: string): ServiceParts =>
      partsFor(store.service("shop/cart") as Service, store.slices("shop/cart"), "IPv4", node) as ServiceParts;
    const hintsOf = ({ portEndpoints }: ServiceParts): unknown => portEndpoints[0]?.entries.map(({ zoneHints }) => zoneHints);
    expect([hintsOf(localizedParts(partsAt(""), "node1")), hintsOf(partsAt("node1"))]).toEqual([[["b"]], [["b"]]]);
  });

  it("of two tied entries on another node that node's view has the newer one, in the shared table, too", () => {
    const store = new Store();
    store.upsert("Service", rawService("cart", {}));
    const zoned = (name: string, triggered: string, zone: string): RawObject =>
      rawSlice("cart", [{ ip: "10.1.1.1", node: "node2", zones: [zone] }], { name, triggered });
    for (const raw of [zoned("a", T1, "old"), zoned("b", "2026-01-01T10:00:03Z", "new"), on("c", "node1", T2)])
      store.upsert("EndpointSlice", raw);
    const parts = (node: string): ServiceParts =>
      partsFor(store.service("shop/cart") as Service, store.slices("shop/cart"), "IPv4", node) as ServiceParts;
    for (const { portEndpoints } of [localizedParts(parts(""), "node2"), parts("node2")])
      expect(portEndpoints[0]?.entries[0]?.zoneHints).toEqual(["new"]);
  });

  it("another port is another endpoint", () => {
    const ports = [
      { name: "http", port: 1 },
      { name: "http", port: 2 },
    ];
    expect(texts(merged([rawSlice("cart", [stays], { ports })]))).toEqual(["10.1.1.1:1", "10.1.1.1:2"]);
  });

  it("sorted by the text of ip:port, byte by byte", () => {
    const endpoints = ["10.1.1.2", "10.1.1.10", "9.1.1.1", "10.1.1.1"].map((ip) => ({ ip }));
    expect(texts(merged([rawSlice("cart", endpoints)]))).toEqual(["10.1.1.10:8080", "10.1.1.1:8080", "10.1.1.2:8080", "9.1.1.1:8080"]);
  });
});

describe("R-67 ports whose slices have other numbers", () => {
  it("share what is merged if the numbers are sorted in the same way", () => {
    const names = ["a", "b", "c", "d"];
    const slice = (name: string, numbers: readonly number[]): RawObject =>
      rawSlice("cart", [{ ip: "10.1.1.1" }, { ip: `10.1.1.${name}` }], {
        name: `cart-${name}`,
        ports: names.map((port, at) => ({ name: port, port: numbers[at] ?? 0 })),
      });
    const store = new Store();
    for (const raw of [slice("2", [8001, 8002, 9003, 8004]), slice("3", [9001, 9002, 8003, 8004])]) store.upsert("EndpointSlice", raw);
    const ports = names.map((name) => ({ name, protocol: "TCP" as const, places: 1 }));
    const found = endpointsOfPorts(store.slices("shop/cart"), ports, "IPv4", "");
    expect(found.map(texts)).toEqual([
      ["10.1.1.1:8001", "10.1.1.1:9001", "10.1.1.2:8001", "10.1.1.3:9001"],
      ["10.1.1.1:8002", "10.1.1.1:9002", "10.1.1.2:8002", "10.1.1.3:9002"],
      ["10.1.1.1:8003", "10.1.1.1:9003", "10.1.1.2:9003", "10.1.1.3:8003"],
      ["10.1.1.1:8004", "10.1.1.2:8004", "10.1.1.3:8004"],
    ]);
    expect(found[1]?.entries).toBe(found[0]?.entries);
  });
});

describe("R-16 which endpoints are local", () => {
  it.each([
    ["on this node", { node: "node1" }, true],
    ["on another", { node: "node2" }, false],
    ["nowhere", {}, false],
  ])("%s", (_name, where, isLocal) => {
    expect(merged([rawSlice("cart", [{ ip: "10.1.1.1", ...where }])]).endpoints[0]?.isLocal).toBe(isLocal);
  });

  it("a proxy that does not know its node has no local endpoints", () => {
    const store = new Store();
    store.upsert("EndpointSlice", rawSlice("cart", [{ ip: "10.1.1.1" }, { ip: "10.1.1.2", node: "node1" }]));
    const found = endpointsFor(store.slices("shop/cart"), { name: "http", protocol: "TCP" }, "IPv4", "");
    expect(found.endpoints.map(({ isLocal }) => isLocal)).toEqual([false, false]);
  });
});

describe("what was there before stays the same objects", () => {
  const PORT = { name: "http", protocol: "TCP" as const };
  const ips = (...last: readonly number[]): Parameters<typeof rawSlice>[1] =>
    last.map((one) => ({ ip: `10.1.1.${one}`, node: `node${one}` }));
  const FIVE = rawSlice("cart", ips(1, 2, 3, 4, 5));
  /** Where endpoints were before, after another version of the slice, or others beside it. */
  const placesAfter = (...slices: readonly RawObject[]): readonly (number | undefined)[] => {
    const store = new Store();
    store.upsert("EndpointSlice", FIVE);
    const before = endpointsFor(store.slices("shop/cart"), PORT, "IPv4", "node1");
    for (const raw of slices) store.upsert("EndpointSlice", raw);
    const found = endpointsFor(store.slices("shop/cart"), PORT, "IPv4", "node1", before);
    const fresh = endpointsFor(store.slices("shop/cart"), PORT, "IPv4", "node1");
    expect(found).toEqual(fresh);
    expect(found === before).toBe(slices.length === 0 || slices[0] === FIVE);
    return found.endpoints.map((one) => (before.endpoints.includes(one) ? before.endpoints.indexOf(one) : undefined));
  };
  it.each([
    ["nothing was heard", [], [0, 1, 2, 3, 4]],
    ["nothing changed", [FIVE], [0, 1, 2, 3, 4]],
    ["one went", [rawSlice("cart", ips(1, 2, 4, 5))], [0, 1, 3, 4]],
    ["most went", [rawSlice("cart", ips(5))], [4]],
    ["the last went", [rawSlice("cart", ips(1, 2, 3, 4))], [0, 1, 2, 3]],
    ["all went", [rawSlice("cart", [])], []],
    ["some came", [rawSlice("cart", ips(0, 1, 2, 21, 3, 4, 5, 6))], [undefined, 0, undefined, 1, 2, 3, 4, undefined]],
    ["in another order", [rawSlice("cart", ips(5, 3, 1, 2, 4, 6))], [0, 1, 2, 3, 4, undefined]],
    ["one is another", [rawSlice("cart", [...ips(1, 2), { ip: "10.1.1.3", ready: false }, ...ips(4, 5)])], [0, 1, undefined, 3, 4]],
    ["one moved", [rawSlice("cart", [...ips(1, 2), { ip: "10.1.1.3", node: "node1" }, ...ips(4, 5)])], [0, 1, undefined, 3, 4]],
    ["the port is another", [rawSlice("cart", ips(1, 2), { ports: [{ name: "http", port: 1 }] })], [undefined, undefined]],
    ["a second slice", [rawSlice("cart", ips(3, 7), { name: "z" })], [0, 1, undefined, 3, 4, undefined]],
    [
      "a second slice with another port",
      [rawSlice("cart", ips(6), { name: "z", ports: [{ name: "http", port: 1 }] })],
      [0, 1, 2, 3, 4, undefined],
    ],
  ])("%s", (_name, slices, expected) => expect(placesAfter(...slices)).toEqual(expected));

  it("none of them on another node", () => {
    const store = new Store();
    store.upsert("EndpointSlice", FIVE);
    const before = endpointsFor(store.slices("shop/cart"), PORT, "IPv4", "node1");
    const { endpoints } = endpointsFor(store.slices("shop/cart"), PORT, "IPv4", "node2", before);
    expect(endpoints.map(({ isLocal }) => isLocal)).toEqual([false, true, false, false, false]);
  });
});
