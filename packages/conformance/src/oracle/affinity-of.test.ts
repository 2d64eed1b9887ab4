import { REFERENCE_VARIANTS } from "./reference-variants.ts";
import { describe, expect, it } from "vitest";
import { rawService, rawSlice } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { affinityOf, isFixed } from "./affinity-of.ts";
import { capabilitiesWithout, packetOf, worldOf } from "./test-support/questions.ts";
import type { OracleWorld } from "./oracle-world.ts";

const PORTS = [
  { name: "http", port: 80, protocol: "TCP" },
  { name: "admin", port: 81, protocol: "TCP" },
];

function withAffinity(spec: RawObject = {}, slicePorts: readonly unknown[] = PORTS): OracleWorld {
  const service = rawService("web", { ports: PORTS, externalIPs: ["198.51.100.1"], sessionAffinity: "ClientIP", ...spec });
  return worldOf([service, rawSlice("web", [{ ip: "10.1.1.1" }], { ports: slicePorts })]);
}

const key = (world: OracleWorld, from: string, to: string): string | undefined => affinityOf(world, packetOf(from, to))?.key;

describe("R-08 how long", () => {
  it.each<[string, RawObject, number | undefined]>([
    ["three hours by default", {}, 10_800],
    ["as long as is said", { sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } }, 60],
    ["three hours where what is said is none", { sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } }, 10_800],
    ["not at all", { sessionAffinity: "None" }, undefined],
  ])("%s", (_name, spec, expected) => expect(affinityOf(withAffinity(spec), packetOf("client", "10.96.0.1 80"))?.seconds).toBe(expected));
});

describe("R-46 one client and one row", () => {
  const world = withAffinity();
  const cluster = key(world, "client", "10.96.0.1 80");
  it("through whichever address it comes", () => {
    expect(cluster).toBeDefined();
    expect(key(world, "client", "198.51.100.1 80")).toBe(cluster);
  });
  it("another client has another", () => expect(key(world, "stranger", "10.96.0.1 80")).not.toBe(cluster));
  it("another port has another", () => expect(key(world, "client", "10.96.0.1 81")).not.toBe(cluster));
  it("nobody's port has none", () => expect(key(world, "client", "10.96.0.1 82")).toBeUndefined());
  it("who is refused has none", () => expect(key(withAffinity({}, []), "client", "10.96.0.1 80")).toBeUndefined());
  it("variant: an address each", () => {
    const perAddress = { ...world, variants: { ...REFERENCE_VARIANTS, affinityScope: "address" } } as const;
    expect(key(perAddress, "client", "198.51.100.1 80")).not.toBe(key(perAddress, "client", "10.96.0.1 80"));
  });
  it("variant: the client's address decides, and nothing is remembered", () => {
    const byAddress = { ...world, variants: { ...REFERENCE_VARIANTS, affinityBy: "address" } } as const;
    expect(key(byAddress, "client", "10.96.0.1 80")).toBeUndefined();
    const packet = packetOf("client", "10.96.0.1 80");
    expect([isFixed(byAddress, packet), isFixed(world, packet)]).toEqual([true, false]);
  });
});

it("R-56 a backend without affinity has none", () => {
  expect(key({ ...withAffinity(), capabilities: capabilitiesWithout("sessionAffinity") }, "client", "10.96.0.1 80")).toBeUndefined();
});
