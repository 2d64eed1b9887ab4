import { describe, expect, it } from "vitest";
import { planCluster } from "./address-plan.ts";

const TWO_NODES = {
  nodes: [
    { name: "node1", zone: "a", pods: 2 },
    { name: "node2", pods: 1 },
  ],
  clients: 1,
};

describe("planCluster", () => {
  it("numbers places and addresses by node and pod", () => {
    const { places } = planCluster(TWO_NODES);
    expect(places.map((place) => [place.name, place.addresses.IPv4, place.addresses.IPv6])).toEqual([
      ["fabric", "172.18.0.254", "fd00:18::fe"],
      ["node1", "172.18.0.1", "fd00:18::1"],
      ["pod-1-1", "10.1.1.1", "fd00:1:1::1"],
      ["pod-1-2", "10.1.1.2", "fd00:1:1::2"],
      ["node2", "172.18.0.2", "fd00:18::2"],
      ["pod-2-1", "10.1.2.1", "fd00:1:2::1"],
      ["client1", "203.0.113.1", "fd00:203::1"],
    ]);
    expect(places[1]).toMatchObject({ kind: "node", zone: "a", podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] });
    expect(places[2]).toMatchObject({ kind: "pod", node: "node1" });
  });

  it("routes each node's pods from the other nodes and the fabric", () => {
    const { commands } = planCluster(TWO_NODES);
    expect(commands.get("node1")).toContain("route add 10.1.2.0/24 via 172.18.0.2");
    expect(commands.get("node2")).toContain("route add fd00:1:1::/64 via fd00:18::1");
    expect(commands.get("fabric")).toContain("route add 10.1.2.0/24 via 172.18.0.2");
    expect(commands.get("fabric")).toContain("route add 198.51.100.0/24 via 172.18.0.1");
  });

  it("gives no link or MAC twice", () => {
    const { links } = planCluster({ nodes: Array.from({ length: 20 }, (_, n) => ({ name: `n${n}`, pods: 20 })), clients: 20 });
    const macs = links.flatMap((link) => [link.routerMac, link.leafMac]);
    expect(links).toHaveLength(20 * 21 + 20);
    expect(new Set(macs).size).toBe(macs.length);
    expect(new Set(links.map((link) => `${link.router} ${link.routerLink}`)).size).toBe(links.length);
  });

  it("leaves the other family out of a single-stack cluster", () => {
    const { places, commands } = planCluster({ ...TWO_NODES, families: ["IPv6"] });
    expect(places.every((place) => place.addresses.IPv4 === undefined)).toBe(true);
    expect([...commands.values()].flat().filter((line) => /\d\.\d+\.\d+\.\d/.test(line))).toEqual([]);
  });

  it.each([
    ["no node", { nodes: [] }],
    [
      "a name twice",
      {
        nodes: [
          { name: "a", pods: 0 },
          { name: "a", pods: 0 },
        ],
      },
    ],
    ["a name that could be an option", { nodes: [{ name: "-batch", pods: 0 }] }],
    ["too many pods", { nodes: [{ name: "a", pods: 201 }] }],
    ["no family", { nodes: [{ name: "a", pods: 0 }], families: [] }],
  ])("refuses %s", (_, shape) => {
    expect(() => planCluster(shape)).toThrow("[invalid_object]");
  });
});
