import { NodeView } from "@turnout/core";
import type { IPFamily, ServicePort } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createStore, NODE_VIEW } from "./subject.ts";
import { targetOf } from "./traffic-targets.ts";
import type { TargetName, TrafficFrom } from "./traffic-targets.ts";
import { ASKED_KINDS, endpointAddress, FAMILIES, trafficObjects, trafficServices } from "./traffic-workload.ts";

const NODE = { IPv4: "172.18.0.1", IPv6: "fd00:18::1" };
const ENDPOINTS = 2;
const FOUR_ONLY: readonly [TargetName, TrafficFrom][] = [
  ["sticky", "pod-1-1"],
  ["sticky", "client1"],
  ["ranged", "client1"],
];

function rowsOf(services: number, family: IPFamily): readonly ServicePort[] {
  const store = createStore();
  const view = new NodeView(store, { ...NODE_VIEW, nodeName: "node1", family });
  const endpoints = Array.from({ length: ENDPOINTS }, (_, number) => ({
    place: { node: "node1", address: (one: IPFamily) => endpointAddress(number, one) } as never,
  }));
  const addresses = FAMILIES.map((one) => ({ type: "InternalIP", address: NODE[one] }));
  store.upsert("Node", { apiVersion: "v1", kind: "Node", metadata: { name: "node1" }, status: { addresses } });
  for (const object of trafficObjects(trafficServices({ services, endpoints: ENDPOINTS }), endpoints))
    store.upsert(object["kind"] as "Service", object);
  for (const kind of ["Node", "ServiceCIDR", "Service", "EndpointSlice"] as const) store.markSynced(kind);
  return view.pull()?.set ?? [];
}

it("source ranges are asked from outside alone, and the endpoints' own addresses from everywhere", () => {
  const world = { services: trafficServices({ services: 1, endpoints: ENDPOINTS }), endpoints: ENDPOINTS, nodeAddress: NODE };
  expect([targetOf("ranged", "pod-1-1", world), targetOf("ranged", "node1", world)]).toEqual([undefined, undefined]);
  expect(targetOf("own IPv6", "client1", world)?.places.map(({ address, tcp }) => `${address} ${tcp}`)).toEqual([
    "fd00:1:1::64 8080",
    "fd00:1:1::65 8080",
  ]);
});

describe("the Services of a workload", () => {
  it.each([
    [1, 3, 1],
    [3, 3, 1],
    [100, 100, 32],
    [1_000, 1_000, 32],
    [10_000, 10_000, 32],
  ])("of %d are %d, and %d of each kind are asked", (services, total, each) => {
    const all = trafficServices({ services, endpoints: 2 });
    expect(all).toHaveLength(total);
    for (const kind of ASKED_KINDS) {
      const numbers = all.flatMap(({ asked }) => (asked?.kind === kind ? [asked.number] : []));
      expect(numbers).toEqual(Array.from({ length: each }, (_, number) => number));
    }
  });

  it("are spread: those of a kind stand in the middle of all, on average", () => {
    const all = trafficServices({ services: 10_000, endpoints: 2 });
    for (const kind of ASKED_KINDS) {
      const places = all.flatMap(({ index, asked }) => (asked?.kind === kind ? [index] : []));
      const mean = places.reduce((sum, place) => sum + place, 0) / places.length;
      expect(Math.abs(mean / all.length - 0.5)).toBeLessThan(0.02);
    }
  });

  it("are refused where the laboratory has too few addresses for them", () =>
    expect(() => trafficServices({ services: 65_001, endpoints: 2 })).toThrow("65,001 x 2 is too much for traffic"));
});

describe.each(FAMILIES)("the objects, %s", (family) => {
  const services = trafficServices({ services: 100, endpoints: ENDPOINTS });
  const rows = rowsOf(100, family);
  const world = { services, endpoints: ENDPOINTS, nodeAddress: NODE };

  it("are a row for each port, nothing reported, all with the endpoints", () => {
    // 96 have two ports instead of one.
    expect(rows).toHaveLength(100 + 96);
    for (const row of rows) expect(row.endpoints.map(({ ip }) => ip)).toEqual([endpointAddress(0, family), endpointAddress(1, family)]);
  });

  const plain = family === "IPv4" ? "plain" : "plain IPv6";
  const asks: readonly [TargetName, TrafficFrom][] = [
    ...(["pod-1-1", "node1", "client1"] as const).map((from): [TargetName, TrafficFrom] => [plain, from]),
    ...(family === "IPv4" ? FOUR_ONLY : []),
  ];
  it.each(asks)("%s, asked from %s, is where one row says so", (name, from) => {
    const target = targetOf(name, from, world);
    if (target === undefined) throw new Error("it is not asked there");
    expect(target.places).toHaveLength(32);
    for (const { address, tcp, udp } of target.places) {
      for (const [protocol, port] of [
        ["TCP", tcp],
        ["UDP", udp],
      ] as const) {
        const found = rows.filter(
          (row) =>
            row.name.protocol === protocol &&
            row.destinations.some((one) => one.port === port && (one.address || NODE[family]) === address),
        );
        expect(found).toHaveLength(1);
        expect(found[0]?.affinitySeconds !== undefined).toBe(name === "sticky");
        const ranges = found[0]?.destinations.some(({ rules }) => rules.some((rule) => rule.from === "outsideSourceRanges"));
        expect(ranges).toBe(name === "ranged");
      }
    }
  });
});
