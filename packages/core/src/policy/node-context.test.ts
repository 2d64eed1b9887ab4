import { describe, expect, it } from "vitest";
import type { DetectLocal } from "../model/rows.ts";
import { DEFAULT_SETTINGS, detectorFor, nodeContextFor } from "./node-context.ts";
import type { NodeContextParts } from "./node-context.ts";
import type { IPFamily, Node } from "../model/api-objects.ts";

describe("R-24 how a pod's packets are told", () => {
  const podCIDRs = ["10.1.1.0/24"];
  it.each<[string, DetectLocal, IPFamily, readonly string[], unknown]>([
    ["ClusterCIDR", { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16"] }, "IPv4", podCIDRs, { by: "cidr", cidrs: ["10.1.0.0/16"] }],
    [
      "ClusterCIDR, the family's own",
      { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/48"] },
      "IPv6",
      [],
      { by: "cidr", cidrs: ["fd00:1::/48"] },
    ],
    [
      "ClusterCIDR, the first of a family",
      { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "10.2.0.0/16"] },
      "IPv4",
      [],
      { by: "cidr", cidrs: ["10.1.0.0/16"] },
    ],
    [
      "ClusterCIDR, host bits cleared",
      { mode: "ClusterCIDR", clusterCIDRs: ["10.1.2.3/16"] },
      "IPv4",
      [],
      { by: "cidr", cidrs: ["10.1.0.0/16"] },
    ],
    ["ClusterCIDR of the other family only", { mode: "ClusterCIDR", clusterCIDRs: ["fd00:1::/48"] }, "IPv4", podCIDRs, undefined],
    ["ClusterCIDR unset: nobody can be told", { mode: "ClusterCIDR", clusterCIDRs: [] }, "IPv4", podCIDRs, undefined],
    ["NodeCIDR", { mode: "NodeCIDR" }, "IPv4", podCIDRs, { by: "cidr", cidrs: ["10.1.1.0/24"] }],
    ["NodeCIDR without one", { mode: "NodeCIDR" }, "IPv6", podCIDRs, undefined],
    ["BridgeInterface", { mode: "BridgeInterface", bridgeInterface: "cni0" }, "IPv6", [], { by: "interface", name: "cni0" }],
    [
      "InterfaceNamePrefix",
      { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" },
      "IPv4",
      [],
      { by: "interfacePrefix", prefix: "veth" },
    ],
  ])("%s", (_name, detectLocal, family, cidrs, expected) => {
    expect(detectorFor({ ...DEFAULT_SETTINGS, detectLocal }, family, cidrs)).toEqual(expected);
  });

  it("unless told otherwise by the cluster range, which is unset", () => {
    expect(DEFAULT_SETTINGS).toMatchObject({
      masqueradeAll: false,
      masqueradeBit: 14,
      detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [] },
    });
  });
});

describe("R-61 the context of a node", () => {
  const node: Node = {
    name: "node1",
    addresses: ["172.18.0.1", "fd00:18::1", "203.0.113.1"],
    podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"],
    zone: "a",
    isDeleting: false,
    isLeaving: false,
  };
  const parts: NodeContextParts = {
    name: "node1",
    family: "IPv4",
    settings: DEFAULT_SETTINGS,
    node,
    serviceCIDRs: ["10.97.0.0/16", "fd00:96::/112", "10.96.0.0/16"],
    bindAddress: undefined,
  };

  it("takes what is of its family, in order; service ranges sorted", () => {
    expect(nodeContextFor(parts)).toMatchObject({
      addresses: ["172.18.0.1", "203.0.113.1"],
      podCIDRs: ["10.1.1.0/24"],
      serviceCIDRs: ["10.96.0.0/16", "10.97.0.0/16"],
      zone: "a",
    });
    expect(nodeContextFor({ ...parts, family: "IPv6" })).toMatchObject({
      addresses: ["fd00:18::1"],
      podCIDRs: ["fd00:1:1::/64"],
      serviceCIDRs: ["fd00:96::/112"],
    });
  });

  it.each([
    ["replaces the primary address of its family", "192.0.2.1", "IPv4" as const, "192.0.2.1"],
    ["leaves the other family alone", "192.0.2.1", "IPv6" as const, "fd00:18::1"],
    ["is not listed twice", "172.18.0.1", "IPv4" as const, "172.18.0.1"],
  ])("a bind address %s", (_name, bindAddress, family, primary) => {
    const { addresses } = nodeContextFor({ ...parts, family, bindAddress });
    expect(addresses[0]).toBe(primary);
    expect(new Set(addresses).size).toBe(addresses.length);
  });

  it("an unknown node has nothing", () => {
    expect(nodeContextFor({ ...parts, node: undefined })).toMatchObject({ name: "node1", addresses: [], podCIDRs: [], zone: "" });
  });
});
