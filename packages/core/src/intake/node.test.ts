import { describe, expect, it } from "vitest";
import { rawNode, rawServiceCIDR } from "../testing/objects.ts";
import type { NodeExtras, RawObject } from "../testing/objects.ts";
import type { Issue, Node } from "../model/api-objects.ts";
import { Store } from "../state/store.ts";

function readRaw(raw: RawObject): { node: Node | undefined; issues: readonly Issue[]; store: Store } {
  const issues: Issue[] = [];
  const store = new Store({ report: (issue) => void issues.push(issue) });
  store.upsert(raw["kind"] === "ServiceCIDR" ? "ServiceCIDR" : "Node", raw);
  return { node: store.node("node1"), issues, store };
}

function sound(extras: NodeExtras): Node | undefined {
  const { node, issues } = readRaw(rawNode("node1", extras));
  expect(issues).toEqual([]);
  return node;
}

describe("R-60 a node that leaves", () => {
  it.each([
    ["no taints", [], false],
    ["another taint", [{ key: "node.kubernetes.io/unreachable", effect: "NoSchedule" }], false],
    [
      "the autoscaler's, whatever its effect and value",
      [{ key: "ToBeDeletedByClusterAutoscaler", value: "1", effect: "NoSchedule" }],
      true,
    ],
    ["not an object", ["ToBeDeletedByClusterAutoscaler"], false],
  ])("%s", (_name, taints, isLeaving) => expect(readRaw(rawNode("node1", { taints })).node?.isLeaving).toBe(isLeaving));

  it("a deletion timestamp", () => {
    const raw = { ...rawNode("node1"), metadata: { name: "node1", deletionTimestamp: "2024-01-01T00:00:00Z" } };
    expect([readRaw(raw).node?.isDeleting, sound({})?.isDeleting]).toEqual([true, false]);
  });
});

describe("R-61 a node's addresses, ranges and zone", () => {
  it("internal addresses first, then external ones, canonical; host names don't count", () => {
    const addresses = [
      { type: "ExternalIP", address: "203.0.113.1" },
      { type: "Hostname", address: "node1" },
      { type: "InternalIP", address: "172.018.0.1" },
      { type: "InternalIP", address: "FD00:18::1" },
    ];
    const { node, issues } = readRaw({ ...rawNode("node1"), status: { addresses } });
    expect(node?.addresses).toEqual(["172.18.0.1", "fd00:18::1", "203.0.113.1"]);
    expect(issues).toEqual([]);
  });

  it("the first 256 of each list, and more are reported", () => {
    const ips = Array.from({ length: 300 }, (_, index) => `172.18.${index >> 8}.${index & 255}`);
    const status = { addresses: ips.map((address) => ({ type: "InternalIP", address })) };
    const spec = { podCIDRs: ips.map((ip) => `${ip}/32`) };
    const { node, issues } = readRaw({ ...rawNode("node1"), status, spec });
    expect([node?.addresses.length, node?.podCIDRs.length]).toEqual([256, 256]);
    expect(issues.map(({ what }) => what)).toEqual([
      'too many items of addresses, the first 256 count: "300"',
      'too many items of podCIDRs, the first 256 count: "300"',
    ]);
  });

  it.each([
    ["both families", { podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] }, ["10.1.1.0/24", "fd00:1:1::/64"]],
    ["the old field", { podCIDR: "10.1.1.0/24" }, ["10.1.1.0/24"]],
    ["the list wins", { podCIDR: "10.9.9.0/24", podCIDRs: ["10.1.1.0/24"] }, ["10.1.1.0/24"]],
    ["none yet", { podCIDR: "" }, []],
  ])("pod ranges: %s", (_name, spec, expected) => {
    const { node, issues } = readRaw({ ...rawNode("node1"), spec });
    expect(node?.podCIDRs).toEqual(expected);
    expect(issues).toEqual([]);
  });

  it.each([
    ["unset", undefined, ""],
    ["empty", "", ""],
    ["a label value", "eu-west_1.a", "eu-west_1.a"],
  ])("zone: %s", (_name, zone, expected) => expect(sound(zone === undefined ? {} : { zone })?.zone).toBe(expected));

  it.each(["a b", "\u001b[31m", "a\n", "z".repeat(64)])("a zone that can't be a label is left out and reported: %j", (zone) => {
    const { node, issues } = readRaw(rawNode("node1", { zone }));
    expect(node?.zone).toBe("");
    expect(issues.map(({ what }) => what)).toEqual([expect.stringMatching(/^bad zone label/)]);
  });

  it.each([
    ["bad InternalIP", { status: { addresses: [{ type: "InternalIP", address: "node1" }] } }],
    ["bad podCIDR", { spec: { podCIDRs: ["10.1.1.0"] } }],
    ["addresses is not a list", { status: { addresses: "172.18.0.1" } }],
    ["podCIDRs is not a list", { spec: { podCIDRs: "10.1.1.0/24" } }],
  ])("%s: reported, the node stays", (what, parts) => {
    const { node, issues } = readRaw({ ...rawNode("node1", { zone: "a" }), ...parts });
    expect(node?.zone).toBe("a");
    expect(issues.map((issue) => issue.what)).toEqual([expect.stringContaining(what)]);
  });
});

describe("R-62 service ranges", () => {
  it("canonical, bad ones reported", () => {
    const { store, issues } = readRaw(rawServiceCIDR("kubernetes", ["10.96.0.1/16", "fd00:96::/112", "all"]));
    expect(store.serviceCIDRs()).toEqual(["10.96.0.0/16", "fd00:96::/112"]);
    expect(issues).toEqual([
      { object: "ServiceCIDR kubernetes", what: expect.stringContaining("bad service CIDR") as string, hint: expect.any(String) as string },
    ]);
  });

  it("those of all objects together; a removed one's go", () => {
    const { store } = readRaw(rawServiceCIDR("kubernetes", ["10.96.0.0/16"]));
    store.upsert("ServiceCIDR", rawServiceCIDR("more", ["10.97.0.0/16"]));
    expect(store.serviceCIDRs()).toEqual(["10.96.0.0/16", "10.97.0.0/16"]);
    store.remove("ServiceCIDR", "", "kubernetes");
    expect(store.serviceCIDRs()).toEqual(["10.97.0.0/16"]);
  });
});
