import { REFERENCE_VARIANTS } from "./reference-variants.ts";
import { describe, expect, it } from "vitest";
import type { Capability, NodeSettings, Variants } from "@turnout/core";
import { rawNode, rawService, rawServiceCIDR, rawSlice } from "@turnout/core/testing";
import type { EndpointShort, RawObject } from "@turnout/core/testing";
import {
  BALANCED_IP,
  BOTH,
  capabilitiesWithout,
  CLUSTER_IP,
  EXTERNAL_IP,
  fate,
  fateOf,
  GONE,
  HERE,
  LEAVING,
  NODE,
  NODE_PORT,
  packetOf,
  THERE,
  WAYS,
  web,
  worldOf,
} from "./test-support/questions.ts";
import type { OracleWorld } from "./oracle-world.ts";
import { verdictOf } from "./verdict-of.ts";

function settings(world: OracleWorld, changes: Partial<NodeSettings>): OracleWorld {
  return { ...world, settings: { ...world.settings, ...changes } };
}

function variants(world: OracleWorld, changes: Partial<Variants>): OracleWorld {
  return { ...world, variants: { ...REFERENCE_VARIANTS, ...changes } };
}

describe("to a cluster IP", () => {
  it.each<[string, RawObject, readonly EndpointShort[], string, string]>([
    ["R-22 the Local internal policy", { internalTrafficPolicy: "Local" }, BOTH, "pod", "10.1.1.1"],
    ["R-22 is nothing to the external policy", { externalTrafficPolicy: "Local" }, BOTH, "pod", "10.1.1.1 10.1.2.1"],
    ["R-23 no endpoint", {}, [], "pod", "reject"],
    ["R-23 none usable, Local", { internalTrafficPolicy: "Local" }, [{ ...HERE, ...GONE }], "client", "reject"],
    ["R-24 a pod", {}, BOTH, "farPod", "10.1.1.1 10.1.2.1"],
    ["R-24 the host", {}, BOTH, "host", "10.1.1.1* 10.1.2.1*"],
    ["R-24 a client", {}, BOTH, "client", "10.1.1.1* 10.1.2.1*"],
    ["R-27 the Local internal policy, none here", { internalTrafficPolicy: "Local" }, [THERE], "host", "drop"],
    ["R-36 hairpin", {}, BOTH, "10.1.1.1", "10.1.1.1* 10.1.2.1"],
  ])("%s", (_name, spec, endpoints, from, expected) => expect(fate(web(spec, endpoints), from, CLUSTER_IP)).toBe(expected));

  it.each<[string, Partial<NodeSettings>, string, string, string]>([
    ["R-25 masqueradeAll rewrites pods too", { masqueradeAll: true }, "pod", CLUSTER_IP, "10.1.1.1* 10.1.2.1*"],
    [
      "R-26 pods can't be told: nobody is rewritten",
      { detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["fd00:1::/32"] } },
      "client",
      CLUSTER_IP,
      "10.1.1.1 10.1.2.1",
    ],
    [
      "R-24 the node's own range: a pod of another node is none",
      { detectLocal: { mode: "NodeCIDR" } },
      "farPod",
      CLUSTER_IP,
      "10.1.1.1* 10.1.2.1*",
    ],
    ["R-24 a bridge", { detectLocal: { mode: "BridgeInterface", bridgeInterface: "veth9" } }, "pod", CLUSTER_IP, "10.1.1.1 10.1.2.1"],
    ["R-24 another link", { detectLocal: { mode: "BridgeInterface", bridgeInterface: "veth" } }, "pod", CLUSTER_IP, "10.1.1.1* 10.1.2.1*"],
    [
      "R-24 links by prefix",
      { detectLocal: { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" } },
      "pod",
      CLUSTER_IP,
      "10.1.1.1 10.1.2.1",
    ],
    [
      "R-24 the host has no link",
      { detectLocal: { mode: "InterfaceNamePrefix", interfaceNamePrefix: "" } },
      "host",
      CLUSTER_IP,
      "10.1.1.1* 10.1.2.1*",
    ],
    [
      "R-24 the first range of a family",
      { detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.2.0/24", "10.1.1.0/24"] } },
      "pod",
      CLUSTER_IP,
      "10.1.1.1* 10.1.2.1*",
    ],
  ])("%s", (_name, changes, from, to, expected) => expect(fate(settings(web(), changes), from, to)).toBe(expected));
});

describe.each([EXTERNAL_IP, BALANCED_IP, NODE_PORT])("from outside, to %s", (to) => {
  const local = { externalTrafficPolicy: "Local" };
  it.each<[string, RawObject, readonly EndpointShort[], string, string]>([
    ["R-28 the Cluster policy rewrites clients", {}, BOTH, "client", "10.1.1.1* 10.1.2.1*"],
    ["R-28 and pods", {}, BOTH, "pod", "10.1.1.1* 10.1.2.1*"],
    ["R-28 whatever the internal policy", { internalTrafficPolicy: "Local" }, [THERE], "client", "10.1.2.1*"],
    ["R-29 no endpoint", {}, [], "client", "reject"],
    ["R-29 whatever the policy", local, [{ ...THERE, ...GONE }], "client", "reject"],
    ["R-30 the Local policy", local, BOTH, "client", "10.1.1.1"],
    ["R-31 a pod is short-circuited", local, [THERE], "pod", "10.1.2.1"],
    ["R-32 the host is short-circuited", local, [THERE], "host", "10.1.2.1*"],
    ["R-33 none here", local, [THERE], "client", "drop"],
    ["R-35 an address of the host in the pods' range is a pod's", local, [THERE], "10.1.1.254", "10.1.2.1"],
    ["R-36 hairpin", local, BOTH, "10.1.1.1", "10.1.1.1* 10.1.2.1"],
  ])("%s", (_name, spec, endpoints, from, expected) => {
    const world = web(spec, endpoints);
    const hostAddresses = { ...world.hostAddresses, IPv4: [...world.hostAddresses.IPv4, "10.1.1.254"] };
    expect(fate({ ...world, hostAddresses }, from, to)).toBe(expected);
  });

  it("R-25 is not for this", () => {
    expect(fate(settings(web(local), { masqueradeAll: true }), "client", to)).toBe("10.1.1.1");
  });

  it("R-34 where pods can't be told, a pod comes from outside", () => {
    expect(fate(settings(web(local, [THERE]), { detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [] } }), "pod", to)).toBe("drop");
  });
});

describe("node ports", () => {
  it.each<[string, readonly string[] | undefined, string, string]>([
    ["R-38 by default the primary address", undefined, "172.18.0.1 30080", "10.1.1.1* 10.1.2.1*"],
    ["R-38 by default no other", undefined, "192.168.7.1 30080", "pass"],
    ["R-37 by range", ["192.168.0.0/16"], "192.168.7.1 30080", "10.1.1.1* 10.1.2.1*"],
    ["R-37 outside the range", ["192.168.0.0/16"], "172.18.0.1 30080", "pass"],
    ["R-37 a family without a range has all", ["fd00::/8"], "192.168.7.1 30080", "10.1.1.1* 10.1.2.1*"],
    ["R-37 a zero range is all", ["10.0.0.0/8", "0.0.0.0/0"], "192.168.7.1 30080", "10.1.1.1* 10.1.2.1*"],
    ["R-37 a range without an address here is none", ["10.0.0.0/8"], "172.18.0.1 30080", "pass"],
    ["R-38 all", ["all"], "192.168.7.1 30080", "10.1.1.1* 10.1.2.1*"],
    ["R-38 localhost is not the others", ["localhost"], "172.18.0.1 30080", "pass"],
    ["R-37 never on another node's address", ["all"], "172.18.0.2 30080", "pass"],
    ["R-37 loopback is not answered", ["all"], "127.0.0.1 30080", "pass"],
  ])("%s", (_name, nodePortAddresses, to, expected) => expect(fate(settings(web(), { nodePortAddresses }), "client", to)).toBe(expected));

  it("R-61 the primary address is the first InternalIP, or the bind address", () => {
    const node = {
      ...NODE,
      status: {
        addresses: [
          { type: "ExternalIP", address: "192.168.7.1" },
          { type: "InternalIP", address: "172.18.0.1" },
        ],
      },
    };
    const world = worldOf([node, rawService("web", WAYS), rawSlice("web", BOTH)]);
    expect(fate(world, "client", NODE_PORT)).not.toBe("pass");
    expect(fate({ ...world, bindAddress: "192.168.7.1" }, "client", NODE_PORT)).toBe("pass");
    expect(fate({ ...world, bindAddress: "192.168.7.1" }, "client", "192.168.7.1 30080")).not.toBe("pass");
  });

  it("R-38 primary on a node without an address of the family is all", () => {
    const world = worldOf([rawNode("node1", { addresses: ["fd00:18::1"] }), rawService("web", WAYS), rawSlice("web", BOTH)]);
    expect(fate(world, "client", "192.168.7.1 30080")).toBe("10.1.1.1* 10.1.2.1*");
  });
});

describe("R-39, R-40 source ranges", () => {
  const ranges = (...loadBalancerSourceRanges: readonly string[]): RawObject => ({ loadBalancerSourceRanges });
  it.each<[string, RawObject, readonly EndpointShort[], string, string, string]>([
    ["inside", ranges("203.0.113.0/25"), BOTH, "client", BALANCED_IP, "10.1.1.1* 10.1.2.1*"],
    ["outside", ranges("203.0.113.0/25"), BOTH, "stranger", BALANCED_IP, "drop"],
    ["outside, no endpoint", ranges("203.0.113.0/25"), [], "stranger", BALANCED_IP, "drop"],
    ["inside, no endpoint", ranges("203.0.113.0/25"), [], "client", BALANCED_IP, "reject"],
    ["pods are asked too", ranges("203.0.113.0/25"), BOTH, "pod", BALANCED_IP, "drop"],
    ["not on external IPs", ranges("203.0.113.0/25"), BOTH, "stranger", EXTERNAL_IP, "10.1.1.1* 10.1.2.1*"],
    ["not on node ports", ranges("203.0.113.0/25"), BOTH, "stranger", NODE_PORT, "10.1.1.1* 10.1.2.1*"],
    ["not on the cluster IP", ranges("203.0.113.0/25"), BOTH, "stranger", CLUSTER_IP, "10.1.1.1* 10.1.2.1*"],
    [
      "an address that is both stays restricted",
      { ...ranges("203.0.113.0/25"), externalIPs: ["198.51.100.2"] },
      BOTH,
      "stranger",
      BALANCED_IP,
      "drop",
    ],
    ["the node is inside: so is the address itself", ranges("172.18.0.0/16"), BOTH, "198.51.100.2", BALANCED_IP, "10.1.1.1* 10.1.2.1*"],
    ["but no other address of the host", ranges("172.18.0.0/16"), BOTH, "192.168.7.1", BALANCED_IP, "drop"],
    ["the node is outside: so is the address itself", ranges("203.0.113.0/25"), BOTH, "198.51.100.2", BALANCED_IP, "drop"],
  ])("%s", (_name, spec, endpoints, from, to, expected) => expect(fate(web(spec, endpoints), from, to)).toBe(expected));
});

describe("R-53 who came first has the address", () => {
  const claimant = (name: string, created: string, clusterIP: string): readonly RawObject[] => [
    rawService(name, { clusterIP, externalIPs: ["198.51.100.1"] }, { created }),
    rawSlice(name, [{ ip: name === "a" ? "10.1.1.1" : "10.1.1.2" }]),
  ];
  it.each([
    ["the older", claimant("a", "2024-01-02T00:00:00Z", "10.96.0.1"), claimant("b", "2024-01-01T00:00:00Z", "10.96.0.2"), "10.1.1.2*"],
    [
      "equal age: the smaller key",
      claimant("a", "2024-01-01T00:00:00Z", "10.96.0.1"),
      claimant("b", "2024-01-01T00:00:00Z", "10.96.0.2"),
      "10.1.1.1*",
    ],
  ])("%s", (_name, one, other, expected) => {
    expect(fate(worldOf([...one, ...other]), "client", EXTERNAL_IP)).toBe(expected);
    expect(fate(worldOf([...other, ...one]), "client", EXTERNAL_IP)).toBe(expected);
    expect(fate(worldOf([...one, ...other]), "pod", "10.96.0.2 80")).toBe("10.1.1.2");
  });
});

describe("R-53, R-64, R-65 whose an address is, before age is asked", () => {
  const OLD = { created: "2023-01-01T00:00:00Z" };
  const served = (name: string, ip: string): RawObject => rawSlice(name, [{ ip }]);
  const thief = (ip: string, port = 80): readonly RawObject[] => [
    rawService("thief", { clusterIP: "10.96.0.9", externalIPs: [ip], ports: [{ name: "http", port }] }, OLD),
    served("thief", "10.1.1.2"),
  ];
  const balanced = (ip: string, port = 80): readonly RawObject[] => [
    rawService(
      "lb",
      { type: "LoadBalancer", clusterIP: "10.96.0.8", ports: [{ name: "http", port }] },
      { created: OLD.created, ingress: [{ ip }] },
    ),
    served("lb", "10.1.1.3"),
  ];
  const victim = [rawService("web", { type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }] }), served("web", "10.1.1.1")];
  const range = rawServiceCIDR("main", ["10.96.0.0/16"]);
  const NODES_OWN = "172.18.0.1 30080";

  it.each<[string, readonly RawObject[], string, string]>([
    ["a cluster IP before an external IP", [...thief("10.96.0.1"), ...victim], CLUSTER_IP, "10.1.1.1*"],
    ["a cluster IP before a load-balancer IP", [...balanced("10.96.0.1"), ...victim], CLUSTER_IP, "10.1.1.1*"],
    ["a load-balancer IP before an external IP", [...thief("198.51.100.1"), ...balanced("198.51.100.1")], EXTERNAL_IP, "10.1.1.3*"],
    ["an external IP in no known range", thief("10.96.0.77"), "10.96.0.77 80", "10.1.1.2*"],
    ["an external IP in a range", [...thief("10.96.0.77"), range], "10.96.0.77 80", "drop"],
    ["a load-balancer IP in a range", [...balanced("10.96.0.77"), range], "10.96.0.77 80", "10.1.1.3*"],
    ["a node port before an external IP", [NODE, ...thief("172.18.0.1", 30080), ...victim], NODES_OWN, "10.1.1.1*"],
    ["a node port before a load-balancer IP", [NODE, ...balanced("172.18.0.1", 30080), ...victim], NODES_OWN, "10.1.1.1*"],
    ["another port of the node", [NODE, ...thief("172.18.0.1", 30081), ...victim], NODES_OWN.replace("30080", "30081"), "10.1.1.2*"],
    ["the host's address that no Node names", [...thief("172.18.0.1", 30080), ...victim], NODES_OWN, "10.1.1.2*"],
  ])("%s", (_name, objects, to, expected) => {
    expect(fate(worldOf(objects), "client", to)).toBe(expected);
    expect(fate(worldOf(objects.toReversed()), "client", to)).toBe(expected);
  });
});

describe("addresses nobody has", () => {
  it.each<[string, string, string, Partial<Variants>, string]>([
    ["R-47 a port nobody defined", "pod", "10.96.0.1 81", {}, "reject"],
    ["R-47 variant", "pod", "10.96.0.1 81", { undefinedClusterIPPort: "pass" }, "pass"],
    ["R-48 an address nobody has", "pod", "10.96.0.99 80", {}, "drop"],
    ["R-48 variant", "pod", "10.96.0.99 80", { unallocatedClusterIP: "pass" }, "pass"],
    ["a port nobody defined on an external IP is left alone", "client", "198.51.100.1 81", {}, "pass"],
    ["on a load-balancer IP", "client", "198.51.100.2 81", {}, "pass"],
    ["R-47 variant of external IPs", "client", "198.51.100.1 81", { undefinedExternalPort: "reject" }, "reject"],
    ["R-47 variant of load-balancer IPs", "client", "198.51.100.2 81", { undefinedExternalPort: "reject" }, "reject"],
    ["R-62 outside the ranges", "pod", "10.97.0.1 80", {}, "pass"],
  ])("%s", (_name, from, to, changes, expected) => expect(fate(variants(web(), changes), from, to)).toBe(expected));

  it("R-62 without ranges nothing is unallocated", () => {
    expect(fate(worldOf([rawService("web"), rawSlice("web", BOTH)]), "pod", "10.96.0.99 80")).toBe("pass");
  });

  it("R-47, R-48 the host's own address is never among them", () => {
    const world = web();
    const bound = { ...world, hostAddresses: { ...world.hostAddresses, IPv4: ["10.96.0.1", "10.96.0.99"] } };
    expect([fate(bound, "pod", "10.96.0.1 81"), fate(bound, "pod", "10.96.0.99 80"), fate(bound, "pod", CLUSTER_IP)]).toEqual([
      "pass",
      "pass",
      "10.1.1.1 10.1.2.1",
    ]);
  });
});

describe("variants", () => {
  it("nodePortRejectScope: the addresses that don't answer refuse as well", () => {
    const onAny = { nodePortRejectScope: "anyLocalAddress" } as const;
    const other = "192.168.7.1 30080";
    expect(fate(web({}, []), "client", other)).toBe("pass");
    expect(fate(variants(web({}, []), onAny), "client", other)).toBe("reject");
    expect(fate(variants(web({ externalTrafficPolicy: "Local" }, [THERE]), onAny), "client", other)).toBe("drop");
    expect(fate(variants(web(), onAny), "client", other)).toBe("pass");
  });

  it("rejectFromHost: the host's own packets to addresses elsewhere", () => {
    const world = variants(web({}, []), { rejectFromHost: false });
    expect([EXTERNAL_IP, BALANCED_IP, NODE_PORT, CLUSTER_IP].map((to) => fate(world, "host", to))).toEqual([
      "pass",
      "pass",
      "reject",
      "reject",
    ]);
    expect([EXTERNAL_IP, NODE_PORT].map((to) => fate(world, "client", to))).toEqual(["reject", "reject"]);
  });

  it("rejectFromHost: what the policy drops as well, for a source that isn't the host's any more; but not who is outside of the ranges", () => {
    const local = { externalTrafficPolicy: "Local" };
    const gone = { IPv4: ["192.168.7.1"], IPv6: [] };
    const world = { ...variants(web(local, [THERE]), { rejectFromHost: false }), hostAddresses: gone };
    expect([EXTERNAL_IP, BALANCED_IP].map((to) => fate(world, "host", to))).toEqual(["pass", "pass"]);
    expect(fate({ ...web(local, [THERE]), hostAddresses: gone }, "host", EXTERNAL_IP)).toBe("drop");
    const ranged = { ...local, loadBalancerSourceRanges: ["203.0.113.0/25"] };
    expect(fate({ ...variants(web(ranged, [THERE]), { rejectFromHost: false }), hostAddresses: gone }, "host", BALANCED_IP)).toBe("drop");
  });

  it("blockedWithoutEndpoints: refused like everybody else", () => {
    const world = variants(web({ loadBalancerSourceRanges: ["203.0.113.0/25"] }, []), { blockedWithoutEndpoints: "reject" });
    expect(fate(world, "stranger", BALANCED_IP)).toBe("reject");
    const served = variants(web({ loadBalancerSourceRanges: ["203.0.113.0/25"] }), { blockedWithoutEndpoints: "reject" });
    expect(fate(served, "stranger", BALANCED_IP)).toBe("drop");
  });

  it.each<[string, RawObject, string, string, string]>([
    ["a pod at a cluster IP", {}, "pod", CLUSTER_IP, "10.1.1.1 10.1.2.1"],
    ["a pod at an external IP keeps its address (R-28)", {}, "pod", EXTERNAL_IP, "10.1.1.1 10.1.2.1"],
    ["the host has an address of its own there (R-24)", {}, "host", CLUSTER_IP, "10.1.1.1 10.1.2.1"],
    ["a client is not on the node", {}, "client", EXTERNAL_IP, "10.1.1.1* 10.1.2.1*"],
    ["under the Local policy the host gets anywhere (R-32)", { externalTrafficPolicy: "Local" }, "host", EXTERNAL_IP, "10.1.1.1 10.1.2.1"],
    ["ranges that keep pods of the node out", { loadBalancerSourceRanges: ["10.1.1.1/32", "172.18.0.0/16"] }, "pod", BALANCED_IP, "drop"],
    ["ranges with the host's primary address", { loadBalancerSourceRanges: ["172.18.0.0/16"] }, "host", BALANCED_IP, "10.1.1.1 10.1.2.1"],
    ["ranges without it", { loadBalancerSourceRanges: ["203.0.113.0/25"] }, "host", BALANCED_IP, "drop"],
  ])("localClients: at sockets, %s", (_, spec, from, to, expected) => {
    expect(fate(variants(web(spec), { localClients: "sockets" }), from, to)).toBe(expected);
  });

  it.each<[string, readonly string[], NodeSettings["detectLocal"], string]>([
    ["the cluster's range", ["10.1.0.0/16"], { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16"] }, "socket"],
    ["the node's, but not the cluster's", ["10.1.1.0/24"], { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16"] }, "packet"],
    ["the cluster's, but not the node's", ["10.1.1.0/25"], { mode: "ClusterCIDR", clusterCIDRs: ["10.1.1.0/25"] }, "packet"],
    ["all, but where no range is known", ["10.0.0.0/8"], { mode: "ClusterCIDR", clusterCIDRs: ["fd00:1::/32"] }, "packet"],
    ["the node's range, where that tells pods", ["10.1.1.0/24"], { mode: "NodeCIDR" }, "socket"],
    ["all, but where a device tells pods", ["10.0.0.0/8"], { mode: "BridgeInterface", bridgeInterface: "veth1" }, "packet"],
  ])("localClients: a pod's socket is served where source ranges have %s", (_, loadBalancerSourceRanges, detectLocal, expected) => {
    const world = settings(variants(web({ loadBalancerSourceRanges }), { localClients: "sockets" }), { detectLocal, masqueradeAll: true });
    // Packets of a Service with the Cluster policy are masqueraded then.
    const seen = expected === "socket" ? "10.1.1.1 10.1.2.1" : "10.1.1.1* 10.1.2.1*";
    expect(fate(world, "pod", BALANCED_IP)).toBe(seen);
  });

  it("localClients: a pod is known by its network namespace, whatever detect-local says, and masqueradeAll is nothing to it", () => {
    const world = variants(web({ externalTrafficPolicy: "Local" }, [THERE]), { localClients: "sockets" });
    const link = settings(world, { detectLocal: { mode: "BridgeInterface", bridgeInterface: "veth9" } });
    expect(fate(link, "pod", EXTERNAL_IP)).toBe("10.1.2.1");
    expect(fate(settings(world, { masqueradeAll: true }), "pod", CLUSTER_IP)).toBe("10.1.2.1");
  });

  it("nodePortScope: all of the host's addresses answer, whatever is chosen, but loopback", () => {
    const world = variants(settings(web(), { nodePortAddresses: ["192.0.2.0/24"] }), { nodePortScope: "all" });
    expect(fate(world, "client", "172.18.0.1 30080")).toBe("10.1.1.1* 10.1.2.1*");
    expect(fate(world, "host", "127.0.0.1 30080")).toBe("pass");
  });

  it("nodePortsOnLoopback: the host is answered on 127.0.0.1 where that is chosen, and never on ::1", () => {
    const world = variants(settings(web(), { nodePortAddresses: ["all"] }), { nodePortsOnLoopback: "IPv4" });
    expect(fate(world, "host", "127.0.0.1 30080")).toBe("10.1.1.1* 10.1.2.1*");
    expect(fate(settings(world, { nodePortAddresses: ["primary"] }), "host", "127.0.0.1 30080")).toBe("pass");
  });
});

describe("R-38 node ports on loopback by the process", () => {
  const ask = (protocol: "TCP" | "UDP", nodePortAddresses: readonly string[], more: Partial<NodeSettings> = {}): string => {
    const world = settings(web({ ports: [{ port: 80, nodePort: 30080, protocol }] }), { nodePortAddresses, ...more });
    return fateOf(variants(world, { nodePortsOnLoopback: "TCP" }), packetOf("host", "127.0.0.1 30080", { protocol }));
  };

  it.each([
    [["localhost"], "reject"],
    [["primary", "127.0.0.1/32"], "reject"],
    [["all", "127.0.0.0/8"], "reject"],
    [["all"], "pass"],
    [["127.0.0.5/32"], "pass"],
    [["primary"], "pass"],
    [["126.0.0.0/7"], "pass"],
  ])("%j: TCP is left to the process, UDP is %s", (addresses, udp) => {
    expect([ask("TCP", addresses), ask("UDP", addresses)]).toEqual(["pass", udp]);
  });

  it("can be turned off", () => {
    expect(ask("UDP", ["localhost"], { localhostNodePorts: false })).toBe("pass");
  });
});

describe("R-56 what a backend can't do", () => {
  it.each<[Capability, RawObject, string, string, string]>([
    ["TCP", {}, "pod", CLUSTER_IP, "drop"],
    ["IPv4", {}, "client", EXTERNAL_IP, "pass"],
    ["sourceRanges", { loadBalancerSourceRanges: ["203.0.113.0/25"] }, "client", BALANCED_IP, "pass"],
    ["sourceRanges", { loadBalancerSourceRanges: ["203.0.113.0/25"] }, "client", EXTERNAL_IP, "10.1.1.1* 10.1.2.1*"],
    ["sourceRanges", {}, "client", BALANCED_IP, "10.1.1.1* 10.1.2.1*"],
    ["hostOrigin", {}, "host", CLUSTER_IP, "pass"],
    ["clientAddress", {}, "pod", CLUSTER_IP, "10.1.1.1* 10.1.2.1*"],
    ["hairpin", {}, "10.1.1.1", CLUSTER_IP, "10.1.1.1 10.1.2.1"],
    ["drop", { loadBalancerSourceRanges: ["203.0.113.0/25"] }, "stranger", BALANCED_IP, "reject"],
    ["refuse", { loadBalancerSourceRanges: ["203.0.113.0/25"] }, "stranger", BALANCED_IP, "drop"],
    ["origins", {}, "client", CLUSTER_IP, "10.1.1.1 10.1.2.1"],
    ["origins", { externalTrafficPolicy: "Local" }, "pod", EXTERNAL_IP, "10.1.1.1"],
    ["origins", { externalTrafficPolicy: "Local" }, "host", EXTERNAL_IP, "10.1.1.1"],
  ])("no %s: %j, %s to %s", (missing, spec, from, to, expected) => {
    expect(fate({ ...web(spec), capabilities: capabilitiesWithout(missing) }, from, to)).toBe(expected);
  });

  it("nothing to refuse or drop with: it passes, and dropped where that can be", () => {
    const without = (...missing: readonly Capability[]): OracleWorld => ({ ...web({}, []), capabilities: capabilitiesWithout(...missing) });
    expect(fate(without("refuse"), "pod", CLUSTER_IP)).toBe("drop");
    expect(fate(without("refuse", "drop"), "pod", CLUSTER_IP)).toBe("pass");
  });

  it("no endpoints of the host: a pool is without them, and may be empty", () => {
    const own = { ...HERE, ip: "172.18.0.1" };
    const without = (endpoints: readonly EndpointShort[]): OracleWorld => ({
      ...web({}, endpoints),
      capabilities: capabilitiesWithout("hostEndpoints"),
    });
    expect(fate(without([own, THERE]), "pod", CLUSTER_IP)).toBe("10.1.2.1");
    expect(fate(without([own]), "pod", CLUSTER_IP)).toBe("reject");
  });
});

it("says which rules decided, the most telling first", () => {
  expect(verdictOf(web({ externalTrafficPolicy: "Local" }), packetOf("client", EXTERNAL_IP)).because).toEqual(["R-30"]);
  expect(verdictOf(web(), packetOf("10.1.1.1", CLUSTER_IP)).because[0]).toBe("R-36");
  expect(verdictOf(web({}, [{ ...HERE, ...LEAVING }]), packetOf("pod", CLUSTER_IP)).because).toEqual(["R-22", "R-24", "R-17", "R-18"]);
});
