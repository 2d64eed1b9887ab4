import { REFERENCE_VARIANTS } from "./reference-variants.ts";
import { describe, expect, it } from "vitest";
import type { NodeSettings, Variants } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import { BALANCED_IP, CLUSTER_IP, EXTERNAL_IP, fate, fateOf, HERE, LEAVING, packetOf, THERE, web } from "./test-support/questions.ts";
import type { OracleWorld } from "./oracle-world.ts";
import { verdictOf } from "./verdict-of.ts";

function settings(world: OracleWorld, changes: Partial<NodeSettings>): OracleWorld {
  return { ...world, settings: { ...world.settings, ...changes } };
}

function variants(world: OracleWorld, changes: Partial<Variants>): OracleWorld {
  return { ...world, variants: { ...REFERENCE_VARIANTS, ...changes } };
}

/** The rest is shown by scenarios.test.ts (the words of every scenario) and disagreement.test.ts (random worlds, beside the core). */
describe("variants", () => {
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

it("says which rules decided, the most telling first", () => {
  expect(verdictOf(web({ externalTrafficPolicy: "Local" }), packetOf("client", EXTERNAL_IP)).because).toEqual(["R-30"]);
  expect(verdictOf(web(), packetOf("10.1.1.1", CLUSTER_IP)).because[0]).toBe("R-36");
  expect(verdictOf(web({}, [{ ...HERE, ...LEAVING }]), packetOf("pod", CLUSTER_IP)).because).toEqual(["R-22", "R-24", "R-17", "R-18"]);
});
