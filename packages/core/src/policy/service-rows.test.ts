import { describe, expect, it } from "vitest";
import { serviceHealth } from "../model/health.ts";
import type { Destination, ServicePort } from "../model/rows.ts";
import { rawNode, rawService, rawSlice } from "../testing/objects.ts";
import type { EndpointShort, RawObject } from "../testing/objects.ts";
import { createStoreView, rowsOf } from "../testing/view.ts";
import type { ViewShort } from "../testing/view.ts";

const HERE: EndpointShort = { ip: "10.1.1.1", node: "node1" };
const THERE: EndpointShort = { ip: "10.1.2.1", node: "node2" };

function rowOf(spec: RawObject, endpoints: readonly EndpointShort[], short: ViewShort = {}, ingress?: readonly unknown[]): ServicePort {
  const objects = [rawNode("node1"), rawService("cart", spec, ingress === undefined ? {} : { ingress }), rawSlice("cart", endpoints)];
  return [...rowsOf(objects, short).values()][0] as ServicePort;
}

function policyOf({ destinations }: ServicePort, kind: Destination["kind"]): readonly string[] {
  const found = destinations.find((destination) => destination.kind === kind);
  return (found?.rules ?? []).map(({ from, to, masquerade }) => `${from}>${to}${masquerade ? "+" : ""}`);
}

function ips({ endpoints }: ServicePort, pool: readonly number[]): readonly string[] {
  return pool.map((index) => endpoints[index]?.ip ?? "?");
}

describe("R-04 a row per port and protocol, in the families that have a cluster IP", () => {
  const ports = [{ name: "dns", port: 53, protocol: "UDP" }, { name: "dns", port: 53, protocol: "TCP" }, { port: 9153 }];
  it.each([
    ["IPv4", { clusterIPs: ["10.96.0.1", "fd00:96::1"], ports }, "IPv4" as const, 3],
    ["IPv6", { clusterIPs: ["10.96.0.1", "fd00:96::1"], ports }, "IPv6" as const, 3],
    ["no cluster IP in the family", { ports }, "IPv6" as const, 0],
    ["R-01 headless", { clusterIP: "None", ports }, "IPv4" as const, 0],
    ["R-02 ExternalName", { type: "ExternalName", ports }, "IPv4" as const, 0],
  ])("%s", (_name, spec, family, count) => expect(rowsOf([rawService("cart", spec)], { family }).size).toBe(count));

  it("keys tell them apart", () => {
    expect([...rowsOf([rawService("cart", { ports })]).keys()]).toEqual(["shop/cart:dns/UDP", "shop/cart:dns/TCP", "shop/cart:/TCP"]);
  });

  it("everything of one family only", () => {
    const objects = [
      rawService("cart", { clusterIPs: ["10.96.0.1", "fd00:96::1"], externalIPs: ["198.51.100.1", "fd00:198::1"] }),
      rawSlice("cart", [HERE], { name: "four" }),
      rawSlice("cart", [{ ip: "fd00:1::1" }], { name: "six", addressType: "IPv6" }),
    ];
    const row = rowsOf(objects, { family: "IPv6" }).get("shop/cart:http/TCP") as ServicePort;
    expect(row.destinations.map(({ address }) => address)).toEqual(["fd00:96::1", "fd00:198::1"]);
    expect(row.endpoints.map(({ ip }) => ip)).toEqual(["fd00:1::1"]);
  });
});

describe("R-21 which pools a row needs", () => {
  const Local = { internalTrafficPolicy: "Local" };
  it.each([
    ["Cluster, no external address", {}, [HERE, THERE], ["10.1.1.1", "10.1.2.1"], []],
    ["internal Local, no external address", Local, [HERE, THERE], [], ["10.1.1.1"]],
    [
      "internal Local with a node port: cluster too",
      { type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }], ...Local },
      [HERE, THERE],
      ["10.1.1.1", "10.1.2.1"],
      ["10.1.1.1"],
    ],
    ["internal Local with an external IP: cluster too", { externalIPs: ["198.51.100.1"], ...Local }, [THERE], ["10.1.2.1"], []],
    [
      "external Local without any external address",
      { type: "NodePort", externalTrafficPolicy: "Local" },
      [HERE, THERE],
      ["10.1.1.1", "10.1.2.1"],
      [],
    ],
  ])("%s", (_name, spec, endpoints, cluster, local) => {
    const row = rowOf(spec, endpoints);
    expect([ips(row, row.cluster), ips(row, row.local)]).toEqual([cluster, local]);
  });
});

describe("the whole walk, from objects to rules", () => {
  it("R-39 a load-balancer IP with source ranges; R-40 the node's own address in them", () => {
    const spec = { type: "LoadBalancer", loadBalancerSourceRanges: ["172.18.0.0/16"] };
    const row = rowOf(spec, [HERE], {}, [{ ip: "203.0.113.9" }]);
    expect(policyOf(row, "loadBalancerIP")).toEqual(["outsideSourceRanges>drop", "anyone>cluster+"]);
    expect(row.destinations.find(({ kind }) => kind === "loadBalancerIP")?.sourceRanges).toEqual(["172.18.0.0/16", "203.0.113.9/32"]);
  });

  it("a bind address decides whether the node is in range", () => {
    const spec = { type: "LoadBalancer", loadBalancerSourceRanges: ["172.18.0.0/16"] };
    const row = rowOf(spec, [HERE], { bindAddress: "192.0.2.1" }, [{ ip: "203.0.113.9" }]);
    expect(row.destinations.find(({ kind }) => kind === "loadBalancerIP")?.sourceRanges).toEqual(["172.18.0.0/16"]);
  });

  it("R-20 topology follows the node's zone, as it changes", () => {
    const endpoints = [
      { ...HERE, zones: ["a"] },
      { ...THERE, zones: ["b"] },
    ];
    const { store, view, pull } = createStoreView([rawNode("node1", { zone: "a" }), rawService("cart"), rawSlice("cart", endpoints)]);
    pull();
    const row = (): ServicePort => view.rows.get("shop/cart:http/TCP") as ServicePort;
    expect([row().topology, ips(row(), row().cluster)]).toEqual(["PreferSameZone", ["10.1.1.1"]]);
    store.upsert("Node", rawNode("node1", { zone: "b" }));
    expect(pull()).toMatchObject({ full: false, node: { zone: "b" } });
    expect(ips(row(), row().cluster)).toEqual(["10.1.2.1"]);
    store.upsert("Node", rawNode("node1"));
    pull();
    expect([row().topology, row().cluster.length]).toEqual(["", 2]);
  });

  it("R-08 affinity belongs to every row of the Service", () => {
    const ports = [
      { name: "a", port: 1 },
      { name: "b", port: 2 },
    ];
    const rows = rowsOf([rawService("cart", { ports, sessionAffinity: "ClientIP" })]);
    expect([...rows.values()].map(({ affinitySeconds }) => affinitySeconds)).toEqual([10_800, 10_800]);
  });
});

describe("R-50, R-51 what a health check node port says", () => {
  const spec = {
    type: "LoadBalancer",
    externalTrafficPolicy: "Local",
    healthCheckNodePort: 32000,
    ports: [
      { name: "http", port: 80 },
      { name: "https", port: 443 },
    ],
  };
  const ports = [
    { name: "http", port: 8080 },
    { name: "https", port: 8443 },
  ];
  const healthOf = (endpoints: readonly EndpointShort[], change: RawObject = {}): unknown =>
    Object.fromEntries(
      serviceHealth(rowsOf([rawService("cart", { ...spec, ...change }), rawSlice("cart", endpoints, { ports })]).values()),
    );
  const answer = (readyLocal: number): unknown => ({ "shop/cart": { port: 32000, readyLocal, loadBalancerIPs: [] } });

  it.each([
    ["one endpoint with two ports is one", [HERE], answer(1)],
    ["two endpoints", [HERE, { ...HERE, ip: "10.1.1.2" }], answer(2)],
    ["remote ones don't count", [HERE, THERE], answer(1)],
    ["terminating ones don't count although they get traffic", [{ ...HERE, ready: false, terminating: true }], answer(0)],
    ["one that isn't ready doesn't count", [{ ...HERE, ready: false }], answer(0)],
    ["none", [], answer(0)],
  ])("%s", (_name, endpoints, expected) => expect(healthOf(endpoints)).toEqual(expected));

  it("names the Service's load-balancer IPs, each once", () => {
    const rows = rowsOf([
      { ...rawService("cart", spec), status: { loadBalancer: { ingress: [{ ip: "198.51.100.7" }, { ip: "198.51.100.8" }] } } },
      rawSlice("cart", [HERE], { ports }),
    ]);
    const loadBalancerIPs = ["198.51.100.7", "198.51.100.8"];
    expect(serviceHealth(rows.values()).get("shop/cart")).toEqual({ port: 32000, readyLocal: 1, loadBalancerIPs });
  });

  it.each([
    ["Cluster policy has none", { externalTrafficPolicy: "Cluster" }],
    ["port 0 is none", { healthCheckNodePort: 0 }],
  ])("%s", (_name, change) => expect(healthOf([HERE], change)).toEqual({}));
});

describe("R-55 large and odd Services", () => {
  it("5,000 endpoints", () => {
    const endpoints = Array.from({ length: 5000 }, (_, index) => ({ ip: `10.1.${index >> 8}.${index & 255}`, node: `node${index % 50}` }));
    const row = rowOf({ internalTrafficPolicy: "Local", externalIPs: ["198.51.100.1"] }, endpoints);
    expect([row.endpoints.length, row.cluster.length, row.local.length]).toEqual([5000, 5000, 100]);
  });

  it("1,000 ports", () => {
    const ports = Array.from({ length: 1000 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
    const rows = rowsOf([
      rawService("cart", { ports }),
      rawSlice("cart", [HERE], { ports: ports.map(({ name, port }) => ({ name, port: port + 1000 })) }),
    ]);
    expect(rows.size).toBe(1000);
    expect(rows.get("shop/cart:p999/TCP")?.endpoints).toMatchObject([{ ip: "10.1.1.1", port: 2000 }]);
  });

  it("names at their limits", () => {
    const [namespace, name, port] = ["n".repeat(63), "s".repeat(63), "p".repeat(15)];
    const rows = rowsOf([rawService(name, { ports: [{ name: port, port: 80 }] }, { namespace })]);
    expect([...rows.keys()]).toEqual([`${namespace}/${name}:${port}/TCP`]);
  });
});
