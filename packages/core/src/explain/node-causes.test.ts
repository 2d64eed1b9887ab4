import { describe, expect, it } from "vitest";
import type { Node } from "../model/api-objects.ts";
import type { NodeContext } from "../model/rows.ts";
import { askedPacket, explainedState } from "../test-support/explained.ts";
import { rawService, rawSlice } from "../testing/index.ts";
import { walkPacket } from "./walk.ts";
import type { Walk } from "./walk.ts";

const LB = "192.0.2.9";
const PORTS = [{ name: "http", port: 80, protocol: "TCP", nodePort: 30_081 }];
const objects = [
  rawService("web", { type: "LoadBalancer", clusterIP: "10.96.0.10", externalTrafficPolicy: "Local", externalIPs: [LB], ports: PORTS }),
  rawSlice("web", [{ ip: "10.1.2.5", node: "node2" }]),
];

interface Asked {
  readonly to?: string;
  readonly port?: number;
  readonly node?: Partial<NodeContext>;
  readonly nodes?: readonly Partial<Node>[];
  readonly source?: string;
}

function walk({ to = LB, port = 80, node, nodes, source = "kube" }: Asked): Walk {
  const known = nodes ?? [{ name: "node1", addresses: ["172.18.0.1"] }];
  const state = explainedState(objects, {
    ...(node === undefined ? {} : { node }),
    hostAddresses: ["172.18.0.1"],
    nodePortAddressesDefault: ["primary"],
    objects: { services: () => [], slices: () => new Map(), nodes: () => known as readonly Node[] },
    source: { name: source, problems: [], isEmpty: false },
  });
  return walkPacket(state, askedPacket({ destination: to, port }));
}

const reported: Partial<NodeContext> = { detector: { by: "cidr", cidrs: ["10.1.0.0/16"] } };
const untold: Partial<NodeContext> = { detector: { by: "cidr", cidrs: ["10.244.0.0/16"] } };

describe("a node's name without a Node", () => {
  it("is named where the policy is Local, with the Node that is this host", () => {
    const nodes = [
      { name: "n2", addresses: ["172.18.0.2"] },
      { name: "n1", addresses: ["172.18.0.1"] },
    ];
    const { causes } = walk({ node: untold, nodes });
    expect(causes.map(({ id }) => id)).toEqual(["node_unknown", "pod_counts_as_outside", "local_policy"]);
    expect(causes[0]).toMatchObject({ fix: "start the proxy with --node-name n1" });
    expect(causes[0]?.says).toContain("told to be node node1, and the source has no Node of that name; Node n1 has this host's address");
  });

  it("is named of a cluster, of which only that Node is known, by the endpoints' nodes", () => {
    expect(walk({ node: untold, nodes: [] }).causes[0]?.says).toContain("it knows of node2");
  });

  it("is a note where it does not decide, and nothing where files have no Nodes", () => {
    const { causes, notes } = walk({ node: reported, nodes: [{ name: "n2", addresses: [] }] });
    expect([causes, notes]).toEqual([[], [expect.stringContaining("no Node of that name; it knows of n2")]]);
    expect(walk({ node: reported, nodes: [], source: "file:x" }).notes).toEqual([]);
    expect(walk({ node: reported }).notes).toEqual([]);
  });
});

describe("a pod that counts as a client outside", () => {
  it("is the culprit where the policy is Local", () => {
    const { causes, steps } = walk({ node: untold });
    expect(causes.map(({ id }) => id)).toEqual(["pod_counts_as_outside", "local_policy"]);
    expect(causes[0]?.says).toContain("10.1.1.6 is in the range of the pods of node1 (10.1.1.0/24)");
    expect(steps[0]?.says).toMatch(/though it is in the range of this node's pods$/);
  });

  it("is a note where it arrives all the same", () => {
    const { causes, notes } = walk({ to: "10.96.0.10", node: untold });
    expect([causes, notes]).toEqual([[], [expect.stringContaining("counts as a client outside the cluster")]]);
  });
});

describe("a Node whose addresses are none of this host's", () => {
  const wrong: Partial<NodeContext> = { ...reported, addresses: ["172.18.0.99"] };

  it("is the culprit for node ports", () => {
    const { causes } = walk({ node: wrong, to: "172.18.0.1", port: 30_081 });
    expect(causes.map(({ id }) => id)).toEqual(["node_address", "node_port_address"]);
    expect(causes[0]?.says).toContain("Node node1 has 172.18.0.99 as its address, which is on no device of this host");
  });

  it("is a note elsewhere", () => {
    expect(walk({ node: wrong, to: "10.96.0.10" }).notes).toEqual([expect.stringContaining("172.18.0.99")]);
    expect(walk({ node: reported, to: "10.96.0.10" }).notes).toEqual([]);
  });
});
