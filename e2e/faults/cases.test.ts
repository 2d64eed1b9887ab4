import { planCluster } from "@turnout/lab";
import type { Place } from "@turnout/lab";
import { expect, it } from "vitest";
import { faultsOf, healthyCases, healthyVariants } from "./cases.ts";
import type { CaseWorld } from "./cases.ts";

const { places } = planCluster({ nodes: ["node1", "node2"].map((name) => ({ name, pods: 3 })) });
const place = (name: string): Place => {
  const found = places.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no place ${name}`);
  return { name, address: (family: "IPv4" | "IPv6") => found.addresses[family] ?? "" } as Place;
};
const names = ["web", "local", "here", "internal", "affine", "ranged", "remote", "hairpin", "self"];
const target = () => ({ address: "10.96.0.1", port: 80 });
const world = (backend: string): CaseWorld => ({
  site: { place },
  services: Object.fromEntries(names.map((name) => [name, { target }])),
  backend,
  flags: [],
});

it.each(["nft", "iptables", "ebpf", "ipvs", "userspace"])("reads the cases of %s", (backend) => {
  const faults = faultsOf(world(backend));
  expect(faults.length).toBeGreaterThan(100);
  expect(new Set(faults.map(({ name }) => name)).size).toBe(faults.length);
  expect(faults.filter((fault) => JSON.stringify(fault).includes("{{"))).toEqual([]);
  expect(faults.filter(({ ask: { to, port } }) => to === "" || !(port > 0))).toEqual([]);
  expect(healthyVariants(backend).length).toBeGreaterThan(1);
  expect(healthyCases(world(backend)).length).toBe(58);
});
