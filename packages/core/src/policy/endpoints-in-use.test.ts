import { beforeEach, describe, expect, it } from "vitest";
import type { EndpointSlice } from "../model/api-objects.ts";
import { EndpointsInUse } from "./endpoints-in-use.ts";

/** Slices of a thousand Services, and who asked for which. */
class CountedSlices {
  readonly slicesOf = new Map<string, ReadonlyMap<string, EndpointSlice>>();
  asked: string[] = [];

  put(service: string, createdMs: number, ...ips: readonly string[]): void {
    const [namespace = "", name = ""] = service.split("/");
    const endpoints = ips.map((ip) => ({
      ip,
      nodeName: undefined,
      ready: true,
      serving: true,
      terminating: false,
      zoneHints: [],
      nodeHints: [],
      podName: undefined,
    }));
    const slice: EndpointSlice = {
      namespace,
      name: `${name}-1`,
      service: name,
      family: "IPv4",
      createdMs,
      ports: [{ name: "http", protocol: "TCP", port: 8080 }],
      endpoints,
      triggeredMs: undefined,
    };
    this.slicesOf.set(service, new Map([[slice.name, slice]]));
  }

  sliceOwners(): Iterable<string> {
    return this.slicesOf.keys();
  }

  slices(service: string): ReadonlyMap<string, EndpointSlice> {
    this.asked.push(service);
    return this.slicesOf.get(service) ?? new Map<string, EndpointSlice>();
  }
}

let source: CountedSlices;
let uses: EndpointsInUse;
beforeEach(() => {
  source = new CountedSlices();
  uses = new EndpointsInUse();
  for (let index = 0; index < 1_000; index++) source.put(`shop/s${index}`, index, `10.1.${index >> 8}.${index & 255}`);
});

const ownerAt = (ip: string, namespace = "evil"): string | undefined => uses.ownerOf(ip, 8080, "TCP", namespace)?.service;

describe("R-73 what reading the slices costs", () => {
  it("nothing as long as no Service wants an address from outside", () => {
    expect([...uses.update(source.sliceOwners(), source)]).toEqual([]);
    expect(source.asked).toEqual([]);
  });

  it("all slices once for new addresses, then those of the Services that changed", () => {
    uses.watch("10.1.0.7", "row 10.1.0.7");
    uses.watch("10.1.1.7", "row 10.1.1.7");
    expect([...uses.update([], source)].toSorted()).toEqual(["row 10.1.0.7", "row 10.1.1.7"]);
    expect(source.asked).toHaveLength(1_000);
    source.asked = [];
    // An endpoint that stays has nothing worked out again, however often its conditions change.
    expect([...uses.update(["shop/s7"], source)]).toEqual([]);
    source.asked = [];
    source.put("shop/s9", 9, "10.1.0.7");
    expect([...uses.update(["shop/s9"], source)]).toEqual(["row 10.1.0.7"]);
    expect([...uses.update(["shop/s10"], source)]).toEqual([]);
    expect(source.asked).toEqual(["shop/s9", "shop/s10"]);
  });

  it("nothing for an address that is let go and wanted again by the same change", () => {
    uses.watch("10.1.0.7", "row 10.1.0.7");
    uses.update([], source);
    source.asked = [];
    uses.unwatch("10.1.0.7", "row 10.1.0.7");
    uses.watch("10.1.0.7", "row 10.1.0.7");
    uses.update([], source);
    expect(source.asked).toEqual([]);
    expect(ownerAt("10.1.0.7")).toBe("shop/s7");
  });
});

describe("R-73 what is kept of a slice", () => {
  it("its ports once, whatever number of its addresses is wanted", () => {
    const ips = Array.from({ length: 1_000 }, (_, index) => `203.0.${index >> 8}.${index & 255}`);
    const asked = { ports: 0 };
    source.put("evil/x", 1, ...ips);
    const slice = source.slicesOf.get("evil/x")?.get("x-1") as EndpointSlice;
    const port = {
      name: "",
      protocol: "TCP" as const,
      get port(): number {
        asked.ports++;
        return 8080;
      },
    };
    source.slicesOf.set("evil/x", new Map([["x-1", { ...slice, ports: [port] }]]));
    for (const ip of ips) uses.watch(ip, "evil/row");
    expect([...uses.update(["evil/x"], source)]).toEqual(["evil/row"]);
    expect(ownerAt("203.0.0.7", "shop")).toBe("evil/x");
    // Once for the Service that changed, and once for the addresses that are new.
    expect(asked.ports).toBe(2);
  });
});

describe("R-73 whose endpoint an address is", () => {
  it("the oldest of other namespaces, and nobody's once its slices are gone or the address is not wanted", () => {
    uses.watch("10.1.0.7", "row 10.1.0.7");
    uses.update([], source);
    expect([ownerAt("10.1.0.7"), ownerAt("10.1.0.7", "shop"), uses.ownerOf("10.1.0.7", 81, "TCP", "evil")]).toEqual([
      "shop/s7",
      undefined,
      undefined,
    ]);
    source.put("lab/a", 3, "10.1.0.7");
    uses.update(["lab/a"], source);
    expect([ownerAt("10.1.0.7"), ownerAt("10.1.0.7", "shop"), ownerAt("10.1.0.7", "lab")]).toEqual(["lab/a", "lab/a", "shop/s7"]);
    source.slicesOf.delete("lab/a");
    source.put("shop/s7", 7);
    expect([...uses.update(["lab/a", "shop/s7"], source)]).toEqual(["row 10.1.0.7"]);
    expect(ownerAt("10.1.0.7")).toBeUndefined();
    source.put("shop/s7", 7, "10.1.0.7");
    uses.update(["shop/s7"], source);
    uses.unwatch("10.1.0.7", "row 10.1.0.7");
    uses.update([], source);
    expect(ownerAt("10.1.0.7")).toBeUndefined();
  });
});
