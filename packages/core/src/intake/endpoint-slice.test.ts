import { describe, expect, it } from "vitest";
import { rawEndpoint, rawSlice } from "../testing/objects.ts";
import type { EndpointShort, RawObject, SliceExtras } from "../testing/objects.ts";
import type { EndpointSlice, Issue } from "../model/api-objects.ts";
import { Store } from "../state/store.ts";
import type { StoreOptions } from "../state/store.ts";

function readRaw(raw: RawObject, options: StoreOptions = {}): { slice: EndpointSlice | undefined; issues: readonly Issue[] } {
  const issues: Issue[] = [];
  const store = new Store({ ...options, report: (issue) => void issues.push(issue) });
  store.upsert("EndpointSlice", raw);
  return { slice: [...store.slices("shop/cart").values()][0], issues };
}

function sound(endpoints: readonly EndpointShort[], extras: SliceExtras = {}): EndpointSlice | undefined {
  const { slice, issues } = readRaw(rawSlice("cart", endpoints, extras));
  expect(issues).toEqual([]);
  return slice;
}

function faulty(raw: RawObject): { slice: EndpointSlice | undefined; what: string } {
  const { slice, issues } = readRaw(raw);
  expect(issues.map(({ object }) => object)).toEqual(["EndpointSlice shop/cart-1"]);
  return { slice, what: issues[0]?.what ?? "" };
}

const pod: EndpointShort = { ip: "10.1.1.1", node: "node1" };

describe("R-11 slices that count", () => {
  it("FQDN slices are ignored in silence", () => expect(sound([], { addressType: "FQDN" })).toBeUndefined());

  it.each(["ipv4", "", 4, null])("addressType %j is reported", (addressType) => {
    const { slice, what } = faulty({ ...rawSlice("cart", [pod]), addressType });
    expect(slice).toBeUndefined();
    expect(what).toMatch(/unknown addressType/);
  });

  it.each([
    ["no labels", {}],
    ["empty", { labels: { "kubernetes.io/service-name": "" } }],
    ["hostile", { labels: { "kubernetes.io/service-name": "cart\n}" } }],
    ["Kubernetes' own", { labels: { "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" } }],
    [
      "another system's with a bad name",
      { labels: { "kubernetes.io/service-name": "A B", "endpointslice.kubernetes.io/managed-by": "x" } },
    ],
    ["number", { labels: { "kubernetes.io/service-name": 7 } }],
  ])("a slice without the name of its Service is reported: %s", (_name, metadata) => {
    const { slice, what } = faulty({ ...rawSlice("cart", [pod]), metadata: { namespace: "shop", name: "cart-1", ...metadata } });
    expect(slice).toBeUndefined();
    expect(what).toMatch(/no usable service label/);
  });
});

describe("R-11 slices that other systems keep for themselves", () => {
  it.each([
    ["a Multi-Cluster Service's", { "multicluster.kubernetes.io/service-name": "web" }],
    ["another manager's", { "endpointslice.kubernetes.io/managed-by": "gateway.example.org" }],
    [
      "of both",
      { "multicluster.kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "lighthouse-agent.submariner.io" },
    ],
  ])("are ignored without a report: %s", (_name, labels) => {
    const { slice, issues } = readRaw({ ...rawSlice("cart", [pod]), metadata: { namespace: "shop", name: "cart-1", labels } });
    expect({ slice, issues }).toEqual({ slice: undefined, issues: [] });
  });

  it("count where they name a Service", () => {
    const labels = { "kubernetes.io/service-name": "cart", "endpointslice.kubernetes.io/managed-by": "gateway.example.org" };
    const { slice, issues } = readRaw({ ...rawSlice("cart", [pod]), metadata: { namespace: "shop", name: "cart-1", labels } });
    expect(slice?.endpoints).toHaveLength(1);
    expect(issues).toEqual([]);
  });
});

describe("R-13 ports", () => {
  it.each([
    ["null", null, []],
    ["empty", [], []],
    ["without a name", [{ port: 8080 }], []],
    ["without a number: not all ports", [{ name: "http" }], []],
    ["number null", [{ name: "http", port: null }], []],
    ["number 0", [{ name: "http", port: 0 }], []],
    ["the empty name is a name", [{ name: "", port: 8080 }], [{ name: "", protocol: "TCP", port: 8080 }]],
    ["protocol null is TCP", [{ name: "a", port: 1, protocol: null }], [{ name: "a", protocol: "TCP", port: 1 }]],
  ])("%s", (_name, ports, expected) => expect(sound([pod], { ports })?.ports).toEqual(expected));

  it.each([
    ["too large", { name: "a", port: 65536 }],
    ["negative", { name: "a", port: -1 }],
    ["text", { name: "a", port: "80" }],
    ["protocol", { name: "a", port: 80, protocol: "ICMP" }],
    ["hostile name", { name: "a;b", port: 80 }],
    ["not an object", 80],
  ])("%s: skipped and reported, the rest stays", (_name, port) => {
    const { slice } = faulty(rawSlice("cart", [pod], { ports: [port, { name: "http", port: 8080 }] }));
    expect(slice?.ports.map(({ name }) => name)).toEqual(["http"]);
  });
});

describe("R-14 endpoints and their conditions", () => {
  it("only the first address counts; none is no endpoint", () => {
    const endpoints = [{ addresses: ["10.1.1.1", "10.1.1.2"] }, { addresses: [] }, {}];
    const { slice, issues } = readRaw({ ...rawSlice("cart", []), endpoints });
    expect(slice?.endpoints.map(({ ip }) => ip)).toEqual(["10.1.1.1"]);
    expect(issues).toEqual([]);
  });

  it.each([
    ["nothing said", {}, [true, true, false]],
    ["all null", { ready: null, serving: null, terminating: null }, [true, true, false]],
    ["not ready", { ready: false }, [false, true, false]],
    ["going, still serving", { ready: false, serving: true, terminating: true }, [false, true, true]],
    ["going, gone", { ready: false, serving: false, terminating: true }, [false, false, true]],
    ["ready though terminating", { ready: true, terminating: true }, [true, true, true]],
  ])("%s", (_name, conditions, [ready, serving, terminating]) => {
    expect(sound([{ ip: "10.1.1.1", ...conditions }])?.endpoints[0]).toMatchObject({ ready, serving, terminating });
  });

  it("conditions null read as none", () => {
    const { slice } = readRaw({ ...rawSlice("cart", []), endpoints: [{ addresses: ["10.1.1.1"], conditions: null }] });
    expect(slice?.endpoints[0]).toMatchObject({ ready: true, serving: true, terminating: false });
  });

  it("a condition that is neither true nor false is reported and counts as not said", () => {
    const endpoints = [{ addresses: ["10.1.1.1"], conditions: { ready: "false" } }];
    const { slice, what } = faulty({ ...rawSlice("cart", []), endpoints });
    expect(slice?.endpoints[0]?.ready).toBe(true);
    expect(what).toMatch(/ready is neither true nor false/);
  });

  it.each([
    ["wrong family", "fd00:1::1", /without a usable IPv4 address/],
    ["garbage", "pod-1", /without a usable IPv4 address/],
    ["number", 7, /without a usable IPv4 address/],
    ["loopback", "127.0.0.1", /loopback endpoint refused/],
    ["link-local", "169.254.169.254", /link-local endpoint refused/],
    ["multicast", "239.0.0.1", /multicast endpoint refused/],
    ["unspecified", "0.0.0.0", /unspecified endpoint refused/],
  ])("R-52 %s endpoint is refused, the others stay", (_name, ip, what) => {
    const raw = { ...rawSlice("cart", []), endpoints: [{ addresses: [ip] }, rawEndpoint(pod)] };
    const { slice, what: said } = faulty(raw);
    expect(slice?.endpoints.map((endpoint) => endpoint.ip)).toEqual(["10.1.1.1"]);
    expect(said).toMatch(what);
  });

  it("many bad endpoints make one report that counts them", () => {
    const { what } = faulty(
      rawSlice(
        "cart",
        Array.from({ length: 500 }, (_, index) => ({ ip: `127.0.${index >> 8}.${index & 255}` })),
      ),
    );
    expect(what).toMatch(/^loopback endpoint refused: "127.0.0.0", "127.0.0.1", "127.0.0.2" and 497 more$/);
  });

  it("addresses come out canonical", () => {
    expect(sound([{ ip: "010.001.1.01" }])?.endpoints[0]?.ip).toBe("10.1.1.1");
    expect(sound([{ ip: "FD00:1:0::1" }], { addressType: "IPv6" })?.endpoints[0]?.ip).toBe("fd00:1::1");
  });
});

describe("R-16 nodes and hints", () => {
  it("hints by name; an empty list is no hint", () => {
    const endpoints = [{ ...pod, zones: ["a", "b"], nodes: ["node1"] }, { ip: "10.1.1.2", zones: [], nodes: [] }, { ip: "10.1.1.3" }];
    expect(sound(endpoints)?.endpoints.map(({ zoneHints, nodeHints }) => [zoneHints, nodeHints])).toEqual([
      [["a", "b"], ["node1"]],
      [[], []],
      [[], []],
    ]);
  });

  it("no node name is no node", () => expect(sound([{ ip: "10.1.1.1" }])?.endpoints[0]?.nodeName).toBeUndefined());

  it.each(["node1\u001b[31m", "node 1", "a\nb", '"', "n".repeat(254)])("a node name that can't be one is left out: %j", (node) => {
    const { slice, what } = faulty(rawSlice("cart", [{ ip: "10.1.1.1", node }]));
    expect(slice?.endpoints).toMatchObject([{ ip: "10.1.1.1", nodeName: undefined }]);
    expect(what).toMatch(/bad nodeName/);
    expect(what).toMatch(/^[\x20-\x7e]*$/);
  });

  it("the first eight hints count, and more are reported", () => {
    const { slice, what } = faulty(rawSlice("cart", [{ ip: "10.1.1.1", zones: "abcdefghi".split("") }]));
    expect([slice?.endpoints[0]?.zoneHints.length, what]).toEqual([8, 'too many items of forZones, the first 8 count: "9"']);
  });

  it("hints of another shape count as none", () => {
    const endpoints = [{ addresses: ["10.1.1.1"], hints: { forZones: [{ name: 7 }, "a"], forNodes: "node1" } }];
    const { slice } = readRaw({ ...rawSlice("cart", []), endpoints });
    expect(slice?.endpoints[0]).toMatchObject({ zoneHints: [], nodeHints: [] });
  });
});

describe("the trigger annotation", () => {
  it.each([
    ["2024-01-01T00:00:00Z", 1_704_067_200_000],
    ["2024-01-01T00:00:00.123456789Z", 1_704_067_200_123],
    ["2024-01-01T01:00:00+01:00", 1_704_067_200_000],
    ["soon", undefined],
    ["2024-01-01T00:00:00Z".padEnd(200_000, " "), undefined],
  ])("%.40s", (triggered, ms) => expect(sound([pod], { triggered })?.triggeredMs).toBe(ms));
});

describe("R-55 the whole object", () => {
  it.each([
    ["ports", { ports: { http: 8080 } }],
    ["endpoints", { endpoints: { addresses: ["10.1.1.1"] } }],
    ["item of endpoints", { endpoints: ["10.1.1.1"] }],
    ["conditions", { endpoints: [{ addresses: ["10.1.1.1"], conditions: [] }] }],
    ["addresses", { endpoints: [{ addresses: "10.1.1.1" }] }],
    ["hints", { endpoints: [{ addresses: ["10.1.1.1"], hints: "a" }] }],
  ])("%s of another shape is reported by name", (field, parts) => {
    expect(faulty({ ...rawSlice("cart", [pod]), ...parts }).what).toMatch(new RegExp(`^${field} is not`));
  });

  it("5,000 endpoints", () => {
    const endpoints = Array.from({ length: 5000 }, (_, index) => ({ ip: `10.1.${index >> 8}.${index & 255}`, node: `node${index % 50}` }));
    expect(sound(endpoints)?.endpoints).toHaveLength(5000);
  });
});

describe("the pod behind an endpoint", () => {
  it.each([
    ["a Pod", { kind: "Pod", name: "cart-7d9" }, "cart-7d9"],
    ["something else", { kind: "Node", name: "node1" }, undefined],
    ["a name that can be none", { kind: "Pod", name: "a/b" }, undefined],
    ["nothing", undefined, undefined],
    ["nonsense", "cart-7d9", undefined],
  ])("%s", (_name, targetRef, expected) => {
    const raw = rawSlice("cart", []);
    const endpoints = [{ ...rawEndpoint(pod), targetRef }];
    expect(readRaw({ ...raw, endpoints }, { keepsPodNames: true })).toMatchObject({
      slice: { endpoints: [{ podName: expected }] },
      issues: [],
    });
    expect(readRaw({ ...raw, endpoints })).toMatchObject({ slice: { endpoints: [{ podName: undefined }] }, issues: [] });
  });
});

describe("CVE-2021-25740 an endpoint of another namespace", () => {
  const withTarget = (targetRef: unknown): RawObject => {
    const raw = rawSlice("cart", [pod]);
    return { ...raw, endpoints: [{ ...rawEndpoint(pod), targetRef }] };
  };

  it("is reported, and used", () => {
    const { slice, what } = faulty(withTarget({ kind: "Pod", namespace: "kube-system", name: "etcd" }));
    expect(what).toBe('an endpoint of another namespace, it is used all the same: "kube-system"');
    expect(slice?.endpoints).toHaveLength(1);
  });

  it.each([[{ kind: "Pod", namespace: "shop", name: "cart-0" }], [{ kind: "Pod", name: "cart-0" }], [null], ["cart-0"]])(
    "is not one whose target is %j",
    (targetRef) => expect(readRaw(withTarget(targetRef)).issues).toEqual([]),
  );
});
