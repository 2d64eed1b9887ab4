import { describe, expect, it } from "vitest";
import { lastingContext, lastingNode } from "./lasting-node.ts";
import { NodeView } from "../state/node-view.ts";
import type { Node } from "../model/api-objects.ts";
import type { NodeContext } from "../model/rows.ts";
import { DEFAULT_SETTINGS } from "./node-context.ts";
import { OBJECT_KINDS } from "../model/api-objects.ts";
import { Store } from "../state/store.ts";
import { rawNode, rawService, rawSlice } from "../testing/objects.ts";

const NODE: Node = {
  name: "node1",
  addresses: ["172.18.0.1", "fd00:18::1"],
  podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"],
  zone: "a",
  isDeleting: false,
  isLeaving: false,
};

it.each<[string, Node | undefined, Node | undefined, Partial<Node>]>([
  ["new", undefined, NODE, NODE],
  ["gone", NODE, undefined, NODE],
  ["without addresses and pod CIDRs", NODE, { ...NODE, addresses: [], podCIDRs: [], zone: "b" }, { ...NODE, zone: "b" }],
  ["of another address", NODE, { ...NODE, addresses: ["172.18.0.9"] }, { addresses: ["172.18.0.9"] }],
  ["of another pod CIDR", NODE, { ...NODE, podCIDRs: ["10.9.9.0/24"] }, { podCIDRs: ["10.9.9.0/24"] }],
  ["out of its zone", NODE, { ...NODE, zone: "" }, { zone: "" }],
])("a node that is %s", (_name, before, now, expected) => {
  expect(lastingNode(before, now)).toMatchObject(expected);
});

it("a node that nobody ever heard of is not known", () => {
  expect(lastingNode(undefined, undefined)).toBeUndefined();
});

const CONTEXT: NodeContext = {
  name: "node1",
  family: "IPv4",
  addresses: ["172.18.0.1"],
  zone: "",
  podCIDRs: [],
  serviceCIDRs: [],
  detector: undefined,
  settings: DEFAULT_SETTINGS,
};
const PODS: Partial<NodeContext> = { podCIDRs: ["10.1.0.0/24"], detector: { by: "cidr", cidrs: ["10.1.0.0/24"] }, zone: "a" };
const UNKNOWN: Partial<NodeContext> = { addresses: [], podCIDRs: [], detector: undefined, zone: "" };

it.each<[string, Partial<NodeContext> | undefined, Partial<NodeContext>, Partial<NodeContext>]>([
  ["is told of for the first time", undefined, UNKNOWN, UNKNOWN],
  ["is not known yet", PODS, UNKNOWN, { ...PODS, addresses: ["172.18.0.1"] }],
  ["is known but for its addresses", PODS, { ...PODS, addresses: [], zone: "b" }, { ...PODS, addresses: ["172.18.0.1"], zone: "b" }],
  ["is known but for its pod CIDRs", PODS, {}, { ...PODS, zone: "" }],
  ["has another address", PODS, { ...PODS, addresses: ["172.18.0.2"], zone: "b" }, { addresses: ["172.18.0.2"], zone: "b" }],
  ["has addresses now", UNKNOWN, {}, { addresses: ["172.18.0.1"] }],
  ["has no address of this family, as before", { addresses: [], zone: "a" }, { addresses: [], zone: "" }, { addresses: [], zone: "" }],
])("a context of a node that %s", (_name, before, now, expected) => {
  expect(lastingContext(before === undefined ? undefined : { ...CONTEXT, ...before }, { ...CONTEXT, ...now })).toMatchObject(expected);
});

describe("a store", () => {
  function storeWith(...nodes: readonly unknown[]): Store {
    const store = new Store();
    for (const node of nodes) store.upsert("Node", node);
    for (const kind of OBJECT_KINDS) store.markSynced(kind);
    return store;
  }

  it("keeps what a node said over its end, until it says something else; whether it exists is another question", () => {
    const store = storeWith(rawNode("node1", { addresses: ["172.18.0.1"], zone: "a" }));
    store.remove("Node", "", "node1");
    expect([store.node("node1"), store.lastingNode("node1")?.addresses]).toEqual([undefined, ["172.18.0.1"]]);
    store.upsert("Node", rawNode("node1", { addresses: [] }));
    expect(store.lastingNode("node1")?.addresses).toEqual(["172.18.0.1"]);
    store.upsert("Node", rawNode("node1", { addresses: ["172.18.0.9"] }));
    expect(store.lastingNode("node1")).toBe(store.node("node1"));
  });

  it("remembers a thousand nodes that are gone, the last ones, and none that is there twice", () => {
    const store = storeWith();
    for (let index = 0; index <= 1_000; index++) {
      store.upsert("Node", rawNode(`node${index}`, { addresses: ["172.18.0.1"] }));
      store.remove("Node", "", `node${index}`);
    }
    expect([store.lastingNode("node0"), store.lastingNode("node1")?.name, store.lastingNode("node1000")?.name]).toEqual([
      undefined,
      "node1",
      "node1000",
    ]);
  });

  it("changes nothing of a node's state when its Node object goes: not its address, not its zone, not its pods", () => {
    const store = storeWith(rawNode("node1", { addresses: ["172.18.0.1"], zone: "a", podCIDRs: ["10.1.1.0/24"] }));
    store.upsert("Service", rawService("cart"));
    store.upsert("EndpointSlice", rawSlice("cart", [{ ip: "10.1.1.5" }]));
    const settings = { ...DEFAULT_SETTINGS, detectLocal: { mode: "NodeCIDR" } } as const;
    const view = new NodeView(store, { nodeName: "node1", family: "IPv4", settings });
    const first = view.pull();
    expect(first?.node).toMatchObject({ addresses: ["172.18.0.1"], zone: "a", detector: { cidrs: ["10.1.1.0/24"] } });
    store.remove("Node", "", "node1");
    expect(view.pull()).toBeUndefined();
    // Nor for who asks anew.
    expect(new NodeView(store, { nodeName: "node1", family: "IPv4", settings }).pull()?.node).toEqual(first?.node);
    store.upsert("Node", rawNode("node1", { addresses: ["172.18.0.2"], zone: "a", podCIDRs: ["10.1.1.0/24"] }));
    expect(view.pull()).toMatchObject({ full: false, node: { addresses: ["172.18.0.2"] } });
  });
});
