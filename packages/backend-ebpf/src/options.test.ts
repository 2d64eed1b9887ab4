import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Capacity, ServicePort } from "@turnout/core/backend";
import { rawService, rawSlice, rowsOf } from "@turnout/core/testing";
import { ebpfModule } from "./module.ts";
import { capacitiesOf, DEFAULT_SIZES, maxEntries, optionFor } from "./options.ts";

function contentsOf(capacity: Capacity | undefined, rows: readonly ServicePort[]): ReadonlyMap<string, number> {
  return new Map(rows.flatMap((row) => capacity?.contentsOf?.(row) ?? []).map(({ key, size }) => [key, size]));
}

function sum(sizes: Iterable<number>): number {
  return [...sizes].reduce((all, one) => all + one, 0);
}

describe("options", () => {
  it("have defaults", () => {
    expect(ebpfModule.parseOptions({})).toEqual({
      sizes: DEFAULT_SIZES,
      optOutServices: new Set(),
      optOutNamespaces: [],
      hostSocketsOnly: false,
      cgroup: undefined,
      devices: [],
      counters: false,
      verifierLog: undefined,
    });
  });

  it("are read", () => {
    const raw = {
      "max-services": 7,
      "max-sockets": 9,
      "opt-out-services": ["shop/cart"],
      "opt-out-namespaces": ["/run/netns/a"],
      "host-sockets-only": true,
      cgroup: "/sys/fs/cgroup/kubepods",
      devices: ["eth*"],
      counters: true,
      "verifier-log": "/var/log/verifier",
    };
    expect(ebpfModule.parseOptions(raw)).toEqual({
      sizes: { ...DEFAULT_SIZES, services: 7, sockets: 9 },
      optOutServices: new Set(["shop/cart"]),
      optOutNamespaces: ["/run/netns/a"],
      hostSocketsOnly: true,
      cgroup: "/sys/fs/cgroup/kubepods",
      devices: ["eth*"],
      counters: true,
      verifierLog: "/var/log/verifier",
    });
  });

  it.each([
    [{ "max-service": 1 }, 'unknown ebpf option "max-service"'],
    [{ "max-services": 0 }, "max-services must be a whole number from 1 to 16777216"],
    [{ "max-affinity": "9" }, "max-affinity must be a whole number"],
    [{ "max-endpoints": 16_777_217 }, "max-endpoints must be a whole number"],
    [{ "opt-out-services": ["cart"] }, "opt-out-services must be a list, each of it namespace/name"],
    [{ "opt-out-namespaces": ["netns"] }, "opt-out-namespaces must be a list, each of it a path"],
    [{ cgroup: "kubepods" }, "cgroup must be a path from / on"],
    [{ cgroup: 3 }, "cgroup must be a path from / on"],
    [{ "verifier-log": "log" }, "verifier-log must be a path from / on"],
    [{ "host-sockets-only": 1 }, "host-sockets-only must be true or false"],
    [{ counters: "yes" }, "counters must be true or false"],
    [{ devices: ["a device"] }, "devices must be a list"],
    [{ devices: [""] }, "devices must be a list"],
    [{ devices: [3] }, "devices must be a list"],
  ])("%j is refused", (raw, message) => expect(() => ebpfModule.parseOptions(raw)).toThrow(message));

  it("size maps that there are, and their defaults are those of the C", () => {
    const header = readFileSync(new URL("programs/layout.h", import.meta.url), "utf8");
    const sized = [...header.matchAll(/max_entries, (\d+)\);[^}]*\} (\w+) SEC/g)].map(([, entries, map]) => [map, Number(entries)]);
    expect(Object.fromEntries(sized)).toMatchObject(maxEntries(DEFAULT_SIZES));
    expect([optionFor("asked_udp"), optionFor("counters"), optionFor("opted_out")]).toEqual(["max-sockets", "max-services", undefined]);
  });

  it("R-76 have rows of each family want half of a map at most, together", () => {
    const all = capacitiesOf({ ...DEFAULT_SIZES, services: 10 }, 2);
    expect(all.map(({ max, hint }) => [max, hint])).toEqual([
      [3, "raise the option max-services"],
      [524_288, "raise the option max-endpoints"],
      [65_536, "raise the option max-ranges"],
    ]);
    const row = [
      ...rowsOf([
        rawService(
          "cart",
          { type: "LoadBalancer", loadBalancerSourceRanges: ["192.0.2.0/24", "198.51.100.0/24"] },
          { ingress: [{ ip: "203.0.113.1" }] },
        ),
        rawSlice("cart", [{ ip: "10.1.0.1" }, { ip: "10.1.0.2" }]),
      ]).values(),
    ][0];
    if (row === undefined) throw new Error("there is a row");
    expect(all.map(({ sizeOf }) => sizeOf(row))).toEqual([2, 2, 2]);
  });

  it("R-76 have lists and source ranges that are the same counted once, as the maps have them", () => {
    const loadBalancerSourceRanges = Array.from({ length: 200 }, (_, index) => `10.${index}.0.0/16`);
    const ports = Array.from({ length: 5 }, (_, index) => ({ name: `p${index}`, port: 80 + index }));
    const services = Array.from({ length: 70 }, (_, index) =>
      rawService(`s${index}`, { type: "LoadBalancer", loadBalancerSourceRanges, ports }, { ingress: [{ ip: `203.0.113.${index}` }] }),
    );
    const rows = [...rowsOf(services).values()];
    const [, , ranges] = capacitiesOf(DEFAULT_SIZES, 2);
    expect(rows).toHaveLength(350);
    expect(sum(rows.map((row) => ranges?.sizeOf(row) ?? 0))).toBeGreaterThan(ranges?.max ?? 0);
    expect(sum(contentsOf(ranges, rows).values())).toBe(200);
  });

  it("R-76 have place for the lists of 20 ports with 20,000 endpoints, where all of them are local too", () => {
    const [, endpoints] = capacitiesOf(DEFAULT_SIZES, 2);
    const [row] = rowsOf([rawService("cart")]).values();
    if (row === undefined || endpoints === undefined) throw new Error("there is a row");
    const all = Array.from({ length: 20_000 }, (_, index) => index);
    expect(20 * endpoints.sizeOf({ ...row, cluster: all, local: [...all] })).toBeLessThanOrEqual(endpoints.max);
    expect(endpoints.sizeOf({ ...row, cluster: [0, 1], local: [1] })).toBe(3);
  });

  it("R-76 name a list by its endpoints, whichever rows have it and in whichever order", () => {
    const [, endpoints] = capacitiesOf(DEFAULT_SIZES, 1);
    const [row] = rowsOf([rawService("cart"), rawSlice("cart", ["10.1.0.1", "10.1.0.2", "10.1.0.3"].map((ip) => ({ ip })))]).values(); // prettier-ignore
    if (row === undefined) throw new Error("there is a row");
    const rows = [[0, 1], [1, 0], [0, 2]].map((cluster) => ({ ...row, cluster, local: cluster })); // prettier-ignore
    const sizes = [...contentsOf(endpoints, rows).values()];
    expect(sizes).toEqual([2, 2]);
  });
});
