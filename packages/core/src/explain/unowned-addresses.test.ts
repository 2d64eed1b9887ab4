import { describe, expect, it } from "vitest";
import type { Node } from "../model/api-objects.ts";
import { askedPacket, explainedState } from "../test-support/explained.ts";
import { rawNode, rawService, rawServiceCIDR, rawSlice } from "../testing/index.ts";
import type { RawObject } from "../testing/index.ts";
import type { AskedPacket } from "./question.ts";
import { walkPacket } from "./walk.ts";
import type { Walk } from "./walk.ts";

const OBJECTS: readonly RawObject[] = [
  rawNode("node2", { addresses: ["172.18.0.2"], podCIDRs: ["10.1.2.0/24"] }),
  rawService("near", {
    type: "LoadBalancer",
    clusterIP: "10.96.0.10",
    externalTrafficPolicy: "Local",
    healthCheckNodePort: 32_000,
    ports: [{ name: "http", port: 80, protocol: "TCP", nodePort: 30_081 }],
  }),
  rawSlice("near", [
    { ip: "10.1.1.5", node: "node1" },
    { ip: "172.18.0.1", node: "node1" },
  ]),
];
const HOST = ["127.0.0.1", "172.18.0.1"];

interface More extends Partial<AskedPacket> {
  readonly own?: string;
  readonly objects?: readonly RawObject[];
}

function walk(destination: string, port: number, { own, objects = [], ...packet }: More = {}): Walk {
  const nodes = [
    { name: "node1", addresses: ["172.18.0.1"] },
    { name: "node2", addresses: ["172.18.0.2"] },
  ] as unknown as readonly Node[];
  const state = explainedState([...OBJECTS, ...objects], {
    hostAddresses: own === undefined ? HOST : [...HOST, own],
    objects: { services: () => [], slices: () => new Map(), nodes: () => nodes },
  });
  return walkPacket(state, askedPacket({ destination, port, ...packet }));
}

describe("an address that no Service has", () => {
  it("and that is like cluster IPs may be a wrong one", () => {
    expect(walk("10.96.0.99", 80).causes).toMatchObject([{ id: "unknown_address", isSure: false }]);
    expect(walk("10.96.0.99", 80).causes[0]?.says).toMatch(/^no Service has 10\.96\.0\.99, .* \(10\.96\.0\.10\)/);
  });

  it.each(["10.97.0.99", "192.0.2.1", "10.1.1.77", "172.18.0.2"])("and that is like none is not blamed: %s", (address) => {
    expect(walk(address, 80).causes).toEqual([]);
  });

  it("is not blamed for its likeness where service ranges are known, and it is in none", () => {
    expect(walk("10.96.0.99", 80, { objects: [rawServiceCIDR("c", ["10.96.0.0/28"])] }).causes).toEqual([]);
  });

  it("is another node's, with a node port that counts there", () => {
    const { steps, causes, notes } = walk("172.18.0.2", 30_081);
    expect(steps.at(-1)?.says).toBe("172.18.0.2:30081/TCP is for node node2, and no Service's that counts here: it goes on as it is");
    expect(causes).toEqual([]);
    expect(notes).toEqual(["30081 is the node port of Service shop/near:http, and 172.18.0.2 is node2's: ask there, too"]);
  });

  it.each([
    ["an endpoint's", "10.1.1.5", 8080, "is an endpoint of Service shop/near:http"],
    ["the node's, with a health check node port", "172.18.0.1", 32_000, "is the health check node port of Service shop/near,"],
  ])("is %s", (_name, address, port, says) => {
    expect(walk(address, port).steps.at(-1)?.says).toContain(says);
  });
});

it("no packet comes from a cluster IP", () => {
  expect(walk("10.96.0.10", 80, { source: "10.96.0.10" }).notes[0]).toMatch(
    /^10\.96\.0\.10 is the cluster IP of Service shop\/near: no packet/,
  );
  expect(walk("10.96.0.10", 80).notes).toEqual([]);
  // A device here has the address, so the host sends from it.
  const { notes, steps } = walk("10.96.0.10", 80, { source: "10.96.0.10", device: "" });
  expect([notes, steps[0]?.says]).toEqual([[], "10.96.0.10 is this node itself"]);
});

it("a pod whose address the host has itself gets nothing; a pod in the host's network does", () => {
  expect(walk("10.96.0.10", 80).causes).toEqual([]);
  expect(walk("10.96.0.10", 80, { own: "10.1.1.5" }).causes).toMatchObject([{ id: "address_taken", show: ["ip addr show to 10.1.1.5"] }]);
});
