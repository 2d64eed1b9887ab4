import type { KernelObject, WhatIsLeft } from "@turnout/core/backend";
import type { NftChange } from "@turnout/host";
import { describe, expect, it } from "vitest";
import { leftObjects } from "./left.ts";

const elements = (verb: NftChange["verb"], name: string, ...keys: readonly string[]): NftChange => ({
  table: "ip turnout",
  verb,
  kind: "elements",
  name,
  keys: keys.map((hex) => Buffer.from(hex.replaceAll(" ", ""), "hex")),
});
const rule = (verb: NftChange["verb"], name: string, table = "ip turnout"): NftChange => ({ table, verb, kind: "rule", name, keys: [] });
const table = (verb: NftChange["verb"]): NftChange => ({ ...rule(verb, ""), kind: "table" });

/** What is left of an object that was held, by its id; undefined: nothing is told of it. */
function leftOf(held: KernelObject | undefined, id: string, ...changes: readonly NftChange[]): unknown {
  const left = leftObjects(changes, "IPv4") as ReadonlyMap<string, WhatIsLeft>;
  expect([...left.keys()]).toEqual([id]);
  return left.get(id)?.(held)?.value;
}

// As the kernel has keys of several parts: each padded to four bytes, ports in network order, numbers in the host's.
const SERVICE = "0a600001 06000000 01bb0000";
const PLACE = { first: "0a600001 01bb0000 00000000", second: "0a600001 01bb0000 01000000", local: "0a600001 01bb0000 40420f00" };
const ID = "service 10.96.0.1 . tcp . 443";
const VALUE = { verdict: "goto pick-2", comment: "shop/cart:https", cluster: ["10.1.0.1 . 80", "10.1.0.2 . 80"], local: [] };
const HELD: KernelObject = { kind: "service", key: "10.96.0.1 . tcp . 443", value: VALUE };

describe("what a commit has left of ours", () => {
  it.each([
    ["its verdict went", [elements("deleted", "services", SERVICE)], { ...VALUE, verdict: "", comment: "" }],
    [
      "its verdict was replaced",
      [elements("deleted", "services", SERVICE), elements("made", "services", SERVICE)],
      { ...VALUE, verdict: "?", comment: "" },
    ],
    ["an endpoint went", [elements("deleted", "endpoints-tcp", PLACE.first)], { ...VALUE, cluster: ["", "10.1.0.2 . 80"] }],
    ["an endpoint was replaced", [elements("made", "endpoints-tcp", PLACE.second)], { ...VALUE, cluster: ["10.1.0.1 . 80", "?"] }],
    ["one came in the other pool", [elements("made", "endpoints-tcp", PLACE.local)], { ...VALUE, local: ["?"] }],
    [
      "all of it went",
      [elements("deleted", "services", SERVICE), elements("deleted", "endpoints-tcp", PLACE.first, PLACE.second)],
      undefined,
    ],
  ])("of a Service, when %s", (_name, changes, left) => {
    expect(leftOf(HELD, ID, ...changes)).toEqual(left);
  });

  it("of a Service that nobody wants, when somebody makes one", () => {
    const value = { verdict: "?", comment: "", cluster: [], local: [] };
    expect(leftOf(undefined, ID, elements("made", "services", SERVICE))).toEqual(value);
    expect(leftOf(undefined, ID, elements("deleted", "services", SERVICE))).toBeUndefined();
  });

  it.each([
    ["nodeports", "11000000 75300000", "nodeport udp . 30000"],
    ["nodeport-endpoints-udp", "75300000 40420f00", "nodeport udp . 30000"],
    ["cluster-ips", "0a600001", "cluster-ips 10.96.0.1"],
    ["hairpin", "0a010002 0a010002", "hairpin 10.1.0.2 . 10.1.0.2"],
    ["endpoints-tcp-7", "0a600001 01bb0000 41420f00", "large-pool endpoints-tcp-7 10.96.0.1 . 443 . 1000000"],
    ["serving-0011223344556677-cluster", "05000020", "affinity-endpoints serving-0011223344556677-cluster"],
    ["serving-0011223344556677-local", "01000040", "affinity-serving serving-0011223344556677-local 1073741825"],
  ])("an element of %s is told by its object", (set, key, id) => {
    expect([...(leftObjects([elements("deleted", set, key)], "IPv4") as ReadonlyMap<string, unknown>).keys()]).toEqual([id]);
  });

  it("an element of IPv6", () => {
    const key = "20010db8000000000000000000000001 06000000 00500000";
    const change = { ...elements("deleted", "services", key), table: "ip6 turnout" };
    expect([...(leftObjects([change], "IPv6") as ReadonlyMap<string, unknown>).keys()]).toEqual(["service 2001:db8::1 . tcp . 80"]);
  });

  it("of a chain another one where rules of it came or went, and nothing where it went", () => {
    const chain: KernelObject = { kind: "chain", key: "dispatch", value: "x/2" };
    expect(leftOf(chain, "chain dispatch", rule("made", "dispatch"), rule("deleted", "dispatch"))).toBe("tampered x/2");
    expect(leftOf(undefined, "chain dispatch", rule("made", "dispatch"))).toBeUndefined();
    expect(leftOf(chain, "chain dispatch", rule("deleted", "dispatch"), { ...rule("deleted", "dispatch"), kind: "chain" })).toBeUndefined();
  });

  it("of a table that went nothing", () => {
    expect(leftObjects([rule("deleted", "dispatch"), { ...rule("deleted", "x"), kind: "set" }, table("deleted")], "IPv4")).toBe("nothing");
  });

  it("what other tables have, and clients that were remembered, is none of ours", () => {
    const others = [
      rule("deleted", "dispatch", "ip nat"),
      rule("deleted", "dispatch", "ip6 turnout"),
      elements("deleted", "affinity-0123456789abcdef", "00"),
    ];
    expect(leftObjects(others, "IPv4")).toEqual(new Map());
  });

  it.each<readonly [name: string, changes: readonly NftChange[] | undefined]>([
    ["too much to tell", undefined],
    ["a chain that came", [{ ...rule("made", "x"), kind: "chain" }]],
    ["a set that went", [{ ...rule("deleted", "services"), kind: "set" }]],
    ["a table that went and came", [table("deleted"), table("made")]],
    ["a rule that says which layout this is", [rule("made", "layout-4")]],
    ["an element of a set that isn't ours", [elements("deleted", "mine", "00")]],
    ["a key of another layout", [elements("deleted", "services", "0a600001")]],
    ["a protocol that isn't ours", [elements("deleted", "nodeports", "01000000 75300000")]],
  ])("everything is compared after %s", (_name, changes) => {
    expect(leftObjects(changes, "IPv4")).toBeUndefined();
  });
});
