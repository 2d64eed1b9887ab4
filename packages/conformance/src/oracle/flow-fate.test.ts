import { describe, expect, it } from "vitest";
import { rawNode, rawService, rawSlice } from "@turnout/core/testing";
import type { EndpointShort, RawObject } from "@turnout/core/testing";
import { capabilitiesWithout, worldOf } from "./test-support/questions.ts";
import { flowFate } from "./flow-fate.ts";
import type { FlowFate } from "./flow-fate.ts";
import type { OracleWorld } from "./oracle-world.ts";

const DNS = { name: "dns", port: 53, protocol: "UDP" };
const A: EndpointShort = { ip: "10.1.1.1" };
const B: EndpointShort = { ip: "10.1.1.2" };
const GONE = { ready: false, serving: false };
const LEAVING = { ready: false, serving: true, terminating: true };
const NODE = rawNode("node1");
const EXTERNAL = { externalIPs: ["198.51.100.1"] };
const NODE_PORT = { type: "NodePort", ports: [{ ...DNS, nodePort: 30_053 }] };

/** A UDP Service with these endpoints. */
function dns(endpoints: readonly EndpointShort[], spec: RawObject = {}, name: string = "dns"): readonly RawObject[] {
  return [rawService(name, { ports: [DNS], ...spec }), rawSlice(name, endpoints, { ports: [{ ...DNS, port: 5353 }] })];
}

/** A client's flow: where it went (default the cluster IP), and by whom it is answered. */
function fate(
  before: readonly RawObject[],
  after: readonly RawObject[],
  endpoint: string,
  destination: string = "10.96.0.1",
  port: number = 53,
): FlowFate {
  const [then, now] = [worldOf([NODE, ...before]), worldOf([NODE, ...after])];
  return flowFate(then, now, { family: "IPv4", source: "203.0.113.1", destination, port, endpoint });
}

const ON_A = "10.1.1.1:5353";
const ON_B = "10.1.1.2:5353";
const VOID = "10.96.0.1:53";

describe("an address of a Service", () => {
  it.each<[string, readonly RawObject[], readonly RawObject[], string, FlowFate]>([
    ["R-41 its endpoint goes", dns([A, B]), dns([B]), ON_A, "forget"],
    ["R-41 its endpoint stops serving", dns([A, B]), dns([{ ...A, ...GONE }, B]), ON_A, "forget"],
    ["R-42 another endpoint goes", dns([A, B]), dns([B]), ON_B, "keep"],
    [
      "R-42 its endpoint serves, and is neither ready nor terminating",
      dns([A, B]),
      dns([{ ...A, ready: false, serving: true }, B]),
      ON_A,
      "keep",
    ],
    ["R-42 its endpoint isn't ready, and says nothing of serving", dns([A]), dns([{ ...A, ready: false }]), ON_A, "keep"],
    ["R-42 its endpoint drains", dns([A, B]), dns([{ ...A, ...LEAVING }, B]), ON_A, "keep"],
    [
      "R-42 a policy that shuts its endpoint out",
      dns([A, B]),
      dns([A, { ...B, node: "node1" }], { internalTrafficPolicy: "Local" }),
      ON_A,
      "keep",
    ],
    ["R-42 nothing changes", dns([A]), dns([A]), ON_A, "keep"],
    ["R-43 the first endpoint comes", dns([]), dns([A]), VOID, "forget"],
    ["R-43 the Service comes", [], dns([A]), VOID, "forget"],
    ["R-43 the last endpoint goes", dns([A]), dns([]), ON_A, "forget"],
    ["R-44 the Service goes", dns([A]), [], ON_A, "forget"],
    ["R-44 the Service goes, the flow is another's", dns([A]), [], "10.1.9.9:5353", "keep"],
    ["R-44 the Service goes, nobody answered", dns([A]), [], VOID, "keep"],
    ["R-45 another Service takes it over, with the same endpoint", dns([A]), dns([A], {}, "dns2"), ON_A, "keep"],
    ["R-45 another Service takes it over, with another endpoint", dns([A]), dns([B], {}, "dns2"), ON_A, "forget"],
    ["a flow that should not be there, nothing changes", dns([A]), dns([A]), ON_B, "either"],
    ["nobody's", [], [], ON_A, "keep"],
  ])("%s", (_name, before, after, endpoint, expected) => expect(fate(before, after, endpoint)).toBe(expected));

  it("R-43 an address that appears frees whoever talked to it", () => {
    expect(fate(dns([A]), dns([A], EXTERNAL), "198.51.100.1:53", "198.51.100.1")).toBe("forget");
    expect(fate(dns([A]), dns([A], EXTERNAL), ON_A)).toBe("keep");
  });

  it("R-44 an address that is given up", () => {
    expect(fate(dns([A], EXTERNAL), dns([A]), ON_A, "198.51.100.1")).toBe("forget");
    expect(fate(dns([A], EXTERNAL), dns([A]), "198.51.100.1:53", "198.51.100.1")).toBe("keep");
  });

  it("another port is another's", () => {
    expect(fate(dns([A]), dns([B]), ON_A, "10.96.0.1", 54)).toBe("keep");
  });
});

describe("a node port", () => {
  const at = (before: readonly RawObject[], after: readonly RawObject[], endpoint: string, destination: string = "172.18.0.1"): FlowFate =>
    fate(before, after, endpoint, destination, 30_053);
  it.each<[string, readonly RawObject[], readonly RawObject[], string, FlowFate]>([
    ["R-41 its endpoint goes", dns([A, B], NODE_PORT), dns([B], NODE_PORT), ON_A, "forget"],
    ["R-43 the first endpoint comes", dns([], NODE_PORT), dns([A], NODE_PORT), "172.18.0.1:30053", "forget"],
    ["R-43 the last endpoint goes", dns([A], NODE_PORT), dns([], NODE_PORT), ON_A, "forget"],
    ["R-43 the last endpoint goes, the flow is another's", dns([A], NODE_PORT), dns([], NODE_PORT), "10.1.9.9:5353", "keep"],
    ["R-44 it goes", dns([A], NODE_PORT), dns([A]), ON_A, "forget"],
    ["R-45 another Service takes it over, without endpoints", dns([A], NODE_PORT), dns([], NODE_PORT, "dns2"), ON_A, "forget"],
    ["R-45 another Service takes it over", dns([A], NODE_PORT), dns([B], NODE_PORT, "dns2"), ON_A, "forget"],
  ])("%s", (_name, before, after, endpoint, expected) => expect(at(before, after, endpoint)).toBe(expected));

  it("R-44 the same number on another host is left alone", () => {
    expect(at(dns([A], NODE_PORT), dns([B], NODE_PORT), "192.0.2.9:30053", "192.0.2.9")).toBe("keep");
  });

  it("which addresses answer is no row's affair", () => {
    const objects = [...dns([A], NODE_PORT)];
    const then = worldOf([NODE, ...objects]);
    const now: OracleWorld = worldOf([rawNode("node1", { addresses: ["192.168.7.1"] }), ...objects]);
    const flow = { family: "IPv4", source: "203.0.113.1", destination: "172.18.0.1", port: 30_053, endpoint: ON_A } as const;
    expect(flowFate(then, now, flow)).toBe("either");
  });
});

it("R-42 TCP flows have no say: a port of that number and another protocol is another's", () => {
  const tcp = { ports: [{ name: "dns", port: 53, protocol: "TCP" }] };
  expect(fate(dns([A], tcp), dns([], tcp), ON_A)).toBe("keep");
});

it("R-56 without UDP nothing is a row's", () => {
  const capabilities = capabilitiesWithout("UDP");
  const [then, now] = [worldOf(dns([A]), { capabilities }), worldOf(dns([B]), { capabilities })];
  expect(flowFate(then, now, { family: "IPv4", source: "203.0.113.1", destination: "10.96.0.1", port: 53, endpoint: ON_A })).toBe("keep");
});
