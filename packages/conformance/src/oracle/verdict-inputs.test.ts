import { describe, expect, it } from "vitest";
import { rawNode, rawService, rawSlice } from "@turnout/core/testing";
import type { EndpointShort, RawObject, SliceExtras } from "@turnout/core/testing";
import {
  BALANCED_IP,
  BOTH,
  CLUSTER_IP,
  EXTERNAL_IP,
  fate,
  GONE,
  HERE,
  LEAVING,
  NODE,
  THERE,
  web,
  worldOf,
} from "./test-support/questions.ts";

describe("which Services count", () => {
  it.each<[string, RawObject, string, string]>([
    ["R-01 headless: not even its external IP", { clusterIP: "None" }, EXTERNAL_IP, "pass"],
    ["R-01 no cluster IP yet", { clusterIP: "" }, EXTERNAL_IP, "pass"],
    ["R-02 ExternalName with a cluster IP left over", { type: "ExternalName" }, EXTERNAL_IP, "pass"],
    ["R-03 the address of another family is nobody's", { clusterIPs: ["10.96.0.1"], ipFamilies: ["IPv6"] }, EXTERNAL_IP, "pass"],
    [
      "R-03 the place in the list decides",
      { clusterIPs: ["fd00:96::1", "10.96.0.7"], ipFamilies: ["IPv6", "IPv4"] },
      "10.96.0.7 80",
      "10.1.1.1 10.1.2.1",
    ],
    [
      "R-04 of two ports with one name the first stays",
      {
        ports: [
          { name: "http", port: 80 },
          { name: "http", port: 81 },
        ],
      },
      "10.96.0.1 81",
      "reject",
    ],
    ["R-05 a bad external IP is skipped", { externalIPs: ["web", "198.51.100.1"] }, EXTERNAL_IP, "10.1.1.1* 10.1.2.1*"],
    ["R-09 leading zeros are decimal", { externalIPs: ["198.051.100.001"] }, EXTERNAL_IP, "10.1.1.1* 10.1.2.1*"],
    ["R-09 IPv4 in IPv6 is IPv4", { externalIPs: ["::ffff:198.51.100.1"] }, EXTERNAL_IP, "10.1.1.1* 10.1.2.1*"],
    [
      "R-10 a ClusterIP Service with external IPs has an external policy",
      { type: "ClusterIP", externalTrafficPolicy: "Local" },
      EXTERNAL_IP,
      "10.1.1.1",
    ],
    ["R-52 loopback is refused", { clusterIP: "127.0.0.2" }, "127.0.0.2 80", "pass"],
    ["R-55 an unknown type is no Service", { type: "Portal" }, EXTERNAL_IP, "pass"],
  ])("%s", (_name, spec, to, expected) => {
    expect(fate(web(spec), to === EXTERNAL_IP ? "client" : "pod", to)).toBe(expected);
  });

  it.each<[string, unknown, RawObject, string]>([
    ["R-06 VIP mode", { ip: "198.51.100.2", ipMode: "VIP" }, {}, "10.1.1.1* 10.1.2.1*"],
    ["R-06 Proxy mode leaves it to the load balancer", { ip: "198.51.100.2", ipMode: "Proxy" }, {}, "pass"],
    ["R-06 a mode nobody knows is not VIP mode", { ip: "198.51.100.2", ipMode: "Magic" }, {}, "pass"],
    ["R-06 a host name is no address", { hostname: "lb.example" }, {}, "pass"],
    ["R-06 whatever the type", { ip: "198.51.100.2" }, { type: "ClusterIP" }, "10.1.1.1* 10.1.2.1*"],
    ["R-07 ranges that nobody can read let nobody in", { ip: "198.51.100.2" }, { loadBalancerSourceRanges: ["everyone"] }, "pass"],
    ["R-07 also as an external IP", { ip: "198.51.100.2" }, { loadBalancerSourceRanges: "all", externalIPs: ["198.51.100.2"] }, "pass"],
    ["R-07 padded, with host bits", { ip: "198.51.100.2" }, { loadBalancerSourceRanges: [" 203.0.113.9/24 "] }, "10.1.1.1* 10.1.2.1*"],
    [
      "R-07 those of the other family don't restrict",
      { ip: "198.51.100.2" },
      { loadBalancerSourceRanges: ["fd00::/8"] },
      "10.1.1.1* 10.1.2.1*",
    ],
  ])("%s", (_name, entry, spec, expected) => expect(fate(web(spec, BOTH, [entry]), "client", BALANCED_IP)).toBe(expected));

  it("R-63 one label hides Services, another one slices, even empty", () => {
    const hide = (object: RawObject, label: string): RawObject => {
      const metadata = object["metadata"] as RawObject;
      return { ...object, metadata: { ...metadata, labels: { ...(metadata["labels"] as RawObject | undefined), [label]: "" } } };
    };
    const service = rawService("web");
    const slice = rawSlice("web", BOTH);
    expect(fate(worldOf([hide(service, "service.kubernetes.io/service-proxy-name"), slice]), "pod", CLUSTER_IP)).toBe("pass");
    expect(fate(worldOf([service, hide(slice, "service.kubernetes.io/headless")]), "pod", CLUSTER_IP)).toBe("reject");
    const all = fate(worldOf([service, slice]), "pod", CLUSTER_IP);
    expect(fate(worldOf([hide(service, "service.kubernetes.io/headless"), slice]), "pod", CLUSTER_IP)).toBe(all);
    expect(fate(worldOf([service, hide(slice, "service.kubernetes.io/service-proxy-name")]), "pod", CLUSTER_IP)).toBe(all);
  });
});

describe("which endpoints exist", () => {
  it.each<[string, readonly EndpointShort[], SliceExtras, string]>([
    ["R-11 a slice of the other family", BOTH, { addressType: "IPv6" }, "reject"],
    ["R-11 a slice in another namespace", BOTH, { namespace: "lab" }, "reject"],
    ["R-12 matched by name, whatever the number", BOTH, { ports: [{ name: "http", port: 9999 }] }, "10.1.1.1:9999 10.1.2.1:9999"],
    ["R-12 not by number", BOTH, { ports: [{ name: "web", port: 80 }] }, "reject"],
    ["R-12 nor across protocols", BOTH, { ports: [{ name: "http", port: 8080, protocol: "UDP" }] }, "reject"],
    ["R-13 no number is not all ports", BOTH, { ports: [{ name: "http" }] }, "reject"],
    ["R-13 no name matches nothing", BOTH, { ports: [{ port: 8080 }] }, "reject"],
    ["R-13 no ports", BOTH, { ports: null }, "reject"],
    ["R-14 nil conditions are ready", [{ ip: "10.1.1.1", ready: null, serving: null, terminating: null }], {}, "10.1.1.1"],
    ["R-15 one address is one endpoint, however written", [HERE, { ...HERE, ip: "010.1.1.1" }], {}, "10.1.1.1"],
    ["R-15 one that does not terminate wins, first", [HERE, { ...HERE, ...LEAVING }, { ...THERE, ...LEAVING }], {}, "10.1.1.1"],
    ["R-15 one that does not terminate wins, last", [{ ...HERE, ...LEAVING }, HERE, { ...THERE, ...LEAVING }], {}, "10.1.1.1"],
    ["R-15 a ready one wins over one that isn't, whatever comes last", [HERE, { ...HERE, ...GONE }], {}, "10.1.1.1"],
    ["R-15 sorted by text", [{ ip: "10.1.2.1" }, { ip: "10.1.10.1" }], {}, "10.1.10.1 10.1.2.1"],
    ["R-52 a metadata server is no endpoint", [{ ip: "169.254.169.254" }], {}, "reject"],
  ])("%s", (_name, endpoints, extras, expected) => {
    expect(fate(worldOf([NODE, rawService("web"), rawSlice("web", endpoints, extras)]), "pod", CLUSTER_IP)).toBe(expected);
  });

  it("R-14 only the first address counts", () => {
    const slice = { ...rawSlice("web", []), endpoints: [{ addresses: ["10.1.1.1", "10.1.1.2"] }, { addresses: [] }] };
    expect(fate(worldOf([rawService("web"), slice]), "pod", CLUSTER_IP)).toBe("10.1.1.1");
  });
});

describe("which endpoints are used", () => {
  const zoned = (zones: readonly string[] | undefined, nodes?: readonly string[]): object => ({
    ...(zones === undefined ? {} : { zones }),
    ...(nodes === undefined ? {} : { nodes }),
  });
  it.each<[string, RawObject, readonly EndpointShort[], string]>([
    [
      "R-17 terminating ones while nothing is ready",
      {},
      [
        { ...HERE, ...LEAVING },
        { ...THERE, ...GONE },
      ],
      "10.1.1.1",
    ],
    ["R-17 not beside a ready one", {}, [{ ...HERE, ...LEAVING }, THERE], "10.1.2.1"],
    ["R-17 serving alone is not enough", {}, [{ ...HERE, ready: false, serving: true }], "reject"],
    ["R-17 ready while terminating is ready", {}, [{ ...HERE, ready: true, terminating: true }], "10.1.1.1"],
    ["R-18 the local pool falls back on its own", { internalTrafficPolicy: "Local" }, [{ ...HERE, ...LEAVING }, THERE], "10.1.1.1"],
    [
      "R-18 the fallback ignores topology",
      {},
      [
        { ...HERE, ...LEAVING, zones: ["b"] },
        { ...THERE, ...LEAVING, zones: ["a"] },
      ],
      "10.1.1.1 10.1.2.1",
    ],
    [
      "R-19 node hints",
      {},
      [
        { ...HERE, ...zoned(["b"], ["node2"]) },
        { ...THERE, ...zoned(["b"], ["node1"]) },
      ],
      "10.1.2.1",
    ],
    [
      "R-19 one without a node hint: zones decide",
      {},
      [
        { ...HERE, ...zoned(["b"]) },
        { ...THERE, ...zoned(["a"], ["node1"]) },
      ],
      "10.1.2.1",
    ],
    [
      "R-19 none names this node: zones decide",
      {},
      [
        { ...HERE, ...zoned(["a"], ["node2"]) },
        { ...THERE, ...zoned(["b"], ["node2"]) },
      ],
      "10.1.1.1",
    ],
    [
      "R-20 zone hints",
      {},
      [
        { ...HERE, ...zoned(["b"]) },
        { ...THERE, ...zoned(["a", "c"]) },
      ],
      "10.1.2.1",
    ],
    ["R-20 one without a hint: all", {}, [HERE, { ...THERE, ...zoned(["a"]) }], "10.1.1.1 10.1.2.1"],
    [
      "R-20 one that is not ready needs none",
      {},
      [
        { ...HERE, ...GONE },
        { ...THERE, ...zoned(["a"]) },
        { ip: "10.1.2.2", ...zoned(["b"]) },
      ],
      "10.1.2.1",
    ],
    [
      "R-20 none for this zone: all",
      {},
      [
        { ...HERE, ...zoned(["b"]) },
        { ...THERE, ...zoned(["c"]) },
      ],
      "10.1.1.1 10.1.2.1",
    ],
    [
      "R-20 the local pool never looks at hints",
      { internalTrafficPolicy: "Local" },
      [
        { ...HERE, ...zoned(["b"]) },
        { ...THERE, ...zoned(["a"]) },
      ],
      "10.1.1.1",
    ],
  ])("%s", (_name, spec, endpoints, expected) => expect(fate(web(spec, endpoints), "pod", CLUSTER_IP)).toBe(expected));

  it("R-20 a node without a zone gets all", () => {
    const slice = rawSlice("web", [
      { ...HERE, zones: ["b"] },
      { ...THERE, zones: ["a"] },
    ]);
    expect(fate(worldOf([rawNode("node1"), rawService("web"), slice]), "pod", CLUSTER_IP)).toBe("10.1.1.1 10.1.2.1");
  });

  it("R-21 both policies Local: a pod is short-circuited to the whole cluster", () => {
    const world = web({ internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" }, [THERE]);
    expect([fate(world, "pod", EXTERNAL_IP), fate(world, "pod", CLUSTER_IP), fate(world, "client", EXTERNAL_IP)]).toEqual([
      "10.1.2.1",
      "drop",
      "drop",
    ]);
  });
});
