import { OBJECT_KINDS, NodeView, Store, type Issue, type ServicePort } from "@turnout/core";
import { POD_SETTINGS } from "@turnout/core/testing";
import { beforeEach, describe, expect, test } from "vitest";
import * as globalv1 from "../gen/kpng/globalv1/globalv1.ts";
import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { KpngObjects } from "./kpng-objects.ts";
import type { ItemNews } from "./op-collector.ts";

let store: Store;
let objects: KpngObjects;
let issues: Issue[];
let view: NodeView;

beforeEach(() => {
  issues = [];
  const report = (issue: Issue): void => void issues.push(issue);
  store = new Store({ report });
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  objects = new KpngObjects(store, "node1", report);
  view = new NodeView(store, { nodeName: "node1", family: "IPv4", settings: POD_SETTINGS });
});

const emptyService = localv1.Service.decode(new Uint8Array());
const emptyEndpoint = localv1.Endpoint.decode(new Uint8Array());
const set = (...V4: string[]): localv1.IPSet => ({ V4, V6: [] });

function service(overrides: Partial<localv1.Service> = {}, ips: Partial<localv1.ServiceIPs> = {}): Buffer {
  const IPs = { ClusterIPs: set("10.96.0.1"), ExternalIPs: undefined, LoadBalancerIPs: undefined, Headless: false, ...ips };
  const Ports = [{ Name: "http", Protocol: 1, Port: 80, NodePort: 0, TargetPort: 0, TargetPortName: "" } as const];
  return Buffer.from(localv1.Service.encode({ ...emptyService, Namespace: "shop", Name: "cart", IPs, Ports, ...overrides }).finish());
}

function endpoint(ip: string, overrides: Partial<localv1.Endpoint> = {}): localv1.Endpoint {
  return { ...emptyEndpoint, IPs: set(ip), PortOverrides: [{ Name: "http", Port: 8080 }], ...overrides };
}

const local = (ip: string, overrides: Partial<localv1.Endpoint> = {}): Buffer =>
  Buffer.from(localv1.Endpoint.encode(endpoint(ip, overrides)).finish());

function info(ip: string, overrides: Partial<globalv1.EndpointInfo> = {}): Buffer {
  const empty = globalv1.EndpointInfo.decode(new Uint8Array());
  const message = { ...empty, Namespace: "shop", ServiceName: "cart", Endpoint: endpoint(ip), ...overrides };
  return Buffer.from(globalv1.EndpointInfo.encode(message).finish());
}

const item = (setNumber: number, path: string, bytes: Buffer | undefined): ItemNews => ({ set: setNumber, path, bytes });
const rows = (): readonly ServicePort[] => {
  view.pull();
  return [...view.rows.values()];
};
const endpoints = (): readonly string[] => rows().flatMap((row) => row.endpoints.map(({ ip, port }) => `${ip}:${port}`));
const pool = (pick: "cluster" | "local"): readonly (string | undefined)[] =>
  rows().flatMap((row) => row[pick].map((index) => row.endpoints[index]?.ip));

describe("what a node-state server says becomes objects", () => {
  test("whatever comes first", () => {
    objects.apply([item(2, "shop/cart/a", local("10.1.0.1"))]);
    expect(rows()).toEqual([]);
    objects.apply([item(1, "shop/cart", service())]);
    expect(endpoints()).toEqual(["10.1.0.1:8080"]);
    objects.apply([item(1, "shop/cart", undefined)]);
    expect(rows()).toEqual([]);
    objects.apply([item(1, "shop/cart", service())]);
    expect(endpoints()).toEqual(["10.1.0.1:8080"]);
  });

  test("an endpoint that is told twice counts once, and is there until both are gone", () => {
    const twice = [item(11, "shop|cart|s|1", info("10.1.0.1")), item(11, "shop||s|1", info("10.1.0.1"))];
    objects.apply([item(10, "shop|cart||", Buffer.from([18, ...lengthed(service())])), ...twice]);
    expect(endpoints()).toEqual(["10.1.0.1:8080"]);
    objects.apply([item(11, "shop||s|1", undefined)]);
    expect(endpoints()).toEqual(["10.1.0.1:8080"]);
    objects.apply([item(11, "shop|cart|s|1", undefined)]);
    expect(endpoints()).toEqual([]);
  });

  test("paths of globalv1 mean nothing", () => {
    const paths = ["", "|", "a/b/c", "||||||"];
    objects.apply([
      item(10, "x", Buffer.from([18, ...lengthed(service())])),
      ...paths.map((path, index) => item(11, path, info(`10.1.0.${index + 1}`))),
    ]);
    expect(endpoints()).toHaveLength(4);
    objects.apply(paths.map((path) => item(11, path, undefined)));
    expect(endpoints()).toEqual([]);
    expect(issues).toEqual([]);
  });

  test("an endpoint without topology or conditions is ready and elsewhere; one that is not ready is not used", () => {
    objects.apply([
      item(10, "x", Buffer.from([18, ...lengthed(service())])),
      item(11, "1", info("10.1.0.1")),
      item(11, "2", info("10.1.0.2", { Conditions: { Ready: false } })),
      item(11, "3", info("10.1.0.3", { Topology: { Node: "node1", Zone: "" } })),
    ]);
    expect(pool("cluster")).toEqual(["10.1.0.1", "10.1.0.3"]);
    expect(rows()[0]?.endpoints.map(({ isLocal }) => isLocal)).toEqual([false, false, true]);
  });

  test("a node has its zone from either place, and goes", () => {
    const node = { Name: "node1", Labels: new Map([["topology.kubernetes.io/zone", "a"]]), Annotations: new Map(), Topology: undefined };
    const bytes = Buffer.from(globalv1.NodeInfo.encode({ Hash: "1", Node: node }).finish());
    objects.apply([item(12, "|node1||", bytes)]);
    expect(store.node("node1")?.zone).toBe("a");
    objects.apply([item(12, "|node1||", undefined)]);
    expect(store.node("node1")).toBeUndefined();
  });
});

/** The bytes with their length in front; short ones. */
function lengthed(bytes: Buffer): readonly number[] {
  expect(bytes.length).toBeLessThan(128);
  return [bytes.length, ...bytes];
}

describe("nonsense is passed over, and the rest counts", () => {
  const wrong: readonly [what: string, item: ItemNews, reported: number][] = [
    ["a Service that is none", item(1, "shop/other", Buffer.from("ffff", "hex")), 1],
    ["an endpoint that is none", item(2, "shop/cart/x", Buffer.from("0aff", "hex")), 1],
    ["a path without a Service", item(2, "nowhere", local("10.1.0.9")), 1],
    ["an empty path", item(2, "", local("10.1.0.9")), 1],
    ["a set nobody knows", item(99, "shop/cart", service()), 1],
    ["a Service without a name", item(1, "shop/", service({ Name: "" })), 1],
    ["a Service with a hostile name", item(1, "shop/x", service({ Name: "x; rm" })), 1],
    ["an info of nothing", item(10, "a|b||", Buffer.alloc(0)), 0],
    ["a node of nothing", item(12, "|a||", Buffer.alloc(0)), 0],
    ["an endpoint info of nothing", item(11, "a|b|c|d", Buffer.alloc(0)), 0],
    ["an endpoint of nothing", item(2, "shop/cart/x", Buffer.alloc(0)), 0],
    ["an endpoint with a hostile address", item(2, "shop/cart/x", local('10.1.0.9"; drop')), 1],
    ["an endpoint of another port", item(2, "shop/cart/x", local("10.1.0.9", { PortOverrides: [{ Name: "other", Port: 1 }] })), 0],
  ];
  test.each(wrong)("%s", (_what, nonsense, reported) => {
    objects.apply([item(1, "shop/cart", service()), nonsense, item(2, "shop/cart/a", local("10.1.0.1"))]);
    expect(endpoints()).toEqual(["10.1.0.1:8080"]);
    expect(issues).toHaveLength(reported);
    objects.apply([{ ...nonsense, bytes: undefined }]);
    expect(endpoints()).toEqual(["10.1.0.1:8080"]);
  });
});

describe("the number an endpoint listens on", () => {
  const mapping = { Name: "", Protocol: 1, Port: 80, NodePort: 0, TargetPort: 0, TargetPortName: "" } as const;
  const overrides = [
    { Name: "", Port: 7 },
    { Name: "http", Port: 8080 },
    { Name: "web", Port: 9090 },
  ];
  test.each<[what: string, port: Partial<localv1.PortMapping>, numbers: localv1.PortName[], found: readonly string[]]>([
    ["is by the port's name first", { Name: "http", TargetPortName: "web", TargetPort: 1 }, overrides, ["10.1.0.1:8080"]],
    ["then by the target's", { TargetPortName: "web", TargetPort: 1 }, overrides, ["10.1.0.1:9090"]],
    ["then the target's number", { TargetPort: 1 }, overrides, ["10.1.0.1:1"]],
    ["with nothing else the one without a name", {}, overrides, ["10.1.0.1:7"]],
    ["is none when its name is not there", { Name: "admin", TargetPort: 1 }, overrides, []],
    ["is the target's number where there are no names", { Name: "admin", TargetPort: 1 }, [], ["10.1.0.1:1"]],
  ])("%s", (_what, port, numbers, found) => {
    objects.apply([
      item(1, "shop/cart", service({ Ports: [{ ...mapping, ...port }] })),
      item(2, "shop/cart/a", local("10.1.0.1", { PortOverrides: numbers })),
    ]);
    expect(endpoints()).toEqual(found);
  });
});

describe("scopes", () => {
  const scoped = (ip: string, Local: boolean, Internal: boolean, External: boolean): ItemNews =>
    item(2, `shop/cart/${ip}`, local(ip, { Local, Scopes: { Internal, External } }));
  const externals = { ExternalIPs: set("192.0.2.1") };
  type Policies = Pick<localv1.Service, "InternalTrafficToLocal" | "ExternalTrafficToLocal">;
  const cases: readonly [what: string, policies: Partial<Policies>, endpoints: readonly ItemNews[], cluster: string[], local: string[]][] =
    [
      [
        "both traffics everywhere",
        {},
        [scoped("10.1.0.1", true, true, true), scoped("10.1.0.2", false, true, true)],
        ["10.1.0.1", "10.1.0.2"],
        [],
      ],
      [
        "from outside only here: a local one that is for inside alone is not for outside",
        { ExternalTrafficToLocal: true },
        [scoped("10.1.0.1", true, true, false), scoped("10.1.0.2", true, true, true), scoped("10.1.0.3", false, true, false)],
        ["10.1.0.1", "10.1.0.2", "10.1.0.3"],
        ["10.1.0.2"],
      ],
      [
        "a local one that topology keeps from inside is for outside alone",
        { ExternalTrafficToLocal: true },
        [scoped("10.1.0.1", true, false, true), scoped("10.1.0.2", false, true, false)],
        ["10.1.0.2"],
        ["10.1.0.1"],
      ],
      [
        "inside only here: what is elsewhere is for outside",
        { InternalTrafficToLocal: true },
        [scoped("10.1.0.1", true, true, false), scoped("10.1.0.2", false, false, true)],
        ["10.1.0.2"],
        ["10.1.0.1"],
      ],
    ];
  test.each(cases)("%s", (_what, policies, items, cluster, here) => {
    objects.apply([item(1, "shop/cart", service(policies, externals)), ...items]);
    store.upsert("Node", { metadata: { name: "node1", labels: { "topology.kubernetes.io/zone": "in-scope" } } });
    expect([pool("cluster"), pool("local")]).toEqual([cluster, here]);
  });

  test("that are not said are those of the place", () => {
    objects.apply([
      item(1, "shop/cart", service({ InternalTrafficToLocal: true })),
      item(2, "shop/cart/a", local("10.1.0.1", { Local: true })),
      item(2, "shop/cart/b", local("10.1.0.2")),
    ]);
    expect(pool("local")).toEqual(["10.1.0.1"]);
  });
});

describe("source ranges", () => {
  const ips = { LoadBalancerIPs: { V4: ["192.0.2.1", "192.0.2.2"], V6: [] }, ExternalIPs: set("192.0.2.3") };
  type Filters = localv1.IPFilter[];
  const guarded = (): readonly string[] =>
    rows().flatMap(({ destinations }) =>
      destinations.slice(1).map(({ address, sourceRanges = [] }) => [address, ...sourceRanges].join(" ")),
    );
  test.each<[what: string, filters: Filters, found: readonly string[], reported: number]>([
    ["none", [], ["192.0.2.3", "192.0.2.1", "192.0.2.2"], 0],
    [
      "without targets: for the load-balancer IPs",
      [{ TargetIPs: undefined, SourceRanges: ["10.0.0.0/8"] }],
      ["192.0.2.3", "192.0.2.1 10.0.0.0/8", "192.0.2.2 10.0.0.0/8"],
      0,
    ],
    [
      "with those targets",
      [{ TargetIPs: set("192.0.2.1", "192.0.2.2"), SourceRanges: ["10.0.0.0/8"] }],
      ["192.0.2.3", "192.0.2.1 10.0.0.0/8", "192.0.2.2 10.0.0.0/8"],
      0,
    ],
    [
      "for one of them: the other is left out, not opened",
      [{ TargetIPs: set("192.0.2.1"), SourceRanges: ["10.0.0.0/8"] }],
      ["192.0.2.3", "192.0.2.1 10.0.0.0/8"],
      1,
    ],
    [
      "for an external IP: it is left out, not opened",
      [{ TargetIPs: set("192.0.2.3"), SourceRanges: ["10.0.0.0/8"] }],
      ["192.0.2.1", "192.0.2.2"],
      1,
    ],
    ["of the other family alone: none", [{ TargetIPs: undefined, SourceRanges: ["fd00::/8"] }], ["192.0.2.3", "192.0.2.1", "192.0.2.2"], 0],
  ])("%s", (_what, filters, found, reported) => {
    const Type = "LoadBalancer";
    objects.apply([item(1, "shop/cart", service({ Type, IPFilters: filters }, ips)), item(2, "shop/cart/a", local("10.1.0.1"))]);
    expect(guarded()).toEqual(found);
    expect(issues).toHaveLength(reported);
  });
});
