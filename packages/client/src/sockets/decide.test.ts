import { describe, expect, it } from "vitest";
import { choose, fateOf, hostViewOf, policyOf } from "./decide.ts";
import type { Fate } from "./decide.ts";
import type { ListenerRule, ListenerValue } from "./listeners.ts";

const HOST = hostViewOf({ addresses: ["172.18.0.1", "fd00:18::1"], pods: ["10.1.0.0/16", "fd00:1::/32"] });
const CLUSTER = ["10.1.1.1:8080", "10.1.2.1:8080"];

function listener(rules: readonly ListenerRule[], more: Partial<ListenerValue> = {}): ListenerValue {
  const asked = { address: "10.96.0.10", port: 80 };
  return {
    row: "shop/cart:http/TCP",
    transport: "TCP",
    ip: "10.96.0.10",
    port: 80,
    asked,
    rules,
    cluster: CLUSTER,
    local: ["10.1.1.1:8080"],
    ...more,
  };
}

function textOf(fate: Fate): string {
  return typeof fate === "string" ? fate : fate.map(({ text }) => text).join(" ");
}

const LOCAL_POLICY: readonly ListenerRule[] = [
  { from: "localPod", to: "cluster" },
  { from: "thisHost", to: "cluster" },
  { from: "anyone", to: "local" },
];
const NONE_HERE: readonly ListenerRule[] = [...LOCAL_POLICY.slice(0, 2), { from: "anyone", to: "drop" }];
const RANGED: readonly ListenerRule[] = [
  { from: "outsideSourceRanges", to: "drop" },
  { from: "anyone", to: "cluster" },
];
const BOTH = CLUSTER.join(" ");

describe("what becomes of a client", () => {
  it.each<[string, readonly ListenerRule[], string, string]>([
    ["anyone", [{ from: "anyone", to: "cluster" }], "203.0.113.1", BOTH],
    ["nobody", [{ from: "anyone", to: "reject" }], "10.1.1.1", "reject"],
    ["a pod under the Local policy", LOCAL_POLICY, "10.1.2.9", BOTH],
    ["this host under the Local policy", LOCAL_POLICY, "172.18.0.1", BOTH],
    ["loopback is this host", LOCAL_POLICY, "127.0.0.7", BOTH],
    ["loopback of IPv6 is this host", LOCAL_POLICY, "::1", BOTH],
    ["who asks from the address it asks is this host", LOCAL_POLICY, "10.96.0.10", BOTH],
    ["an IPv6 pod", LOCAL_POLICY, "fd00:1:2::9", BOTH],
    ["an outside client under the Local policy", LOCAL_POLICY, "203.0.113.1", "10.1.1.1:8080"],
    ["an outside client, none here", NONE_HERE, "203.0.113.1", "drop"],
    ["a pod, none here", NONE_HERE, "10.1.1.1", BOTH],
    ["within the source ranges", RANGED, "203.0.113.1", BOTH],
    ["outside the source ranges", RANGED, "203.0.113.200", "drop"],
    ["what is no address is outside of every range", RANGED, "", "drop"],
    [
      "off the cluster",
      [
        { from: "offCluster", to: "local" },
        { from: "anyone", to: "cluster" },
      ],
      "203.0.113.1",
      "10.1.1.1:8080",
    ],
    [
      "on the cluster",
      [
        { from: "offCluster", to: "local" },
        { from: "anyone", to: "cluster" },
      ],
      "10.1.9.9",
      BOTH,
    ],
  ])("%s", (_name, rules, ip, expected) => {
    const policy = policyOf(listener(rules, { sourceRanges: ["203.0.113.0/25"] }));
    expect(textOf(fateOf(policy, HOST, { ip, askedIp: "10.96.0.10" }))).toBe(expected);
  });

  it("an empty pool drops", () => {
    const policy = policyOf(listener([{ from: "anyone", to: "local" }], { local: [] }));
    expect(fateOf(policy, HOST, { ip: "10.1.1.1", askedIp: "10.96.0.10" })).toBe("drop");
  });

  it.each<[readonly ListenerRule[], boolean]>([
    [[{ from: "anyone", to: "reject" }], true],
    [
      [
        { from: "outsideSourceRanges", to: "drop" },
        { from: "anyone", to: "reject" },
      ],
      true,
    ],
    [[{ from: "anyone", to: "drop" }], false],
    [RANGED, false],
  ])("%j refuses everybody: %s", (rules, expected) => {
    expect(policyOf(listener(rules)).refusesAll).toBe(expected);
  });
});

describe("which endpoint", () => {
  const { rules } = policyOf(listener([{ from: "anyone", to: "cluster" }], { cluster: ["10.1.1.1:80", "[fd00:1::1]:81", "10.1.1.3:82"] }));
  const pool = rules[0]?.to as Exclude<Fate, string>;
  const none = new Set<string>();

  it("reads addresses of both families", () => {
    expect(pool.map(({ ip, port }) => [ip, port])).toEqual([
      ["10.1.1.1", 80],
      ["fd00:1::1", 81],
      ["10.1.1.3", 82],
    ]);
  });

  it.each<[string, string | undefined, readonly string[], number, string | undefined]>([
    ["the next", undefined, [], 1, "[fd00:1::1]:81"],
    ["the one kept", "10.1.1.3:82", [], 0, "10.1.1.3:82"],
    ["the next, when the one kept is gone", "10.1.1.9:82", [], 0, "10.1.1.1:80"],
    ["of those that weren't tried", undefined, ["10.1.1.1:80"], 0, "[fd00:1::1]:81"],
    ["not the one kept, when that was tried", "10.1.1.3:82", ["10.1.1.3:82"], 1, "[fd00:1::1]:81"],
    ["the last that is left", undefined, ["10.1.1.1:80", "10.1.1.3:82"], 5, "[fd00:1::1]:81"],
    ["none, when all were tried", undefined, ["10.1.1.1:80", "10.1.1.3:82", "[fd00:1::1]:81"], 0, undefined],
  ])("%s", (_name, kept, tried, next, expected) => {
    expect(choose(pool, { kept, tried: tried.length === 0 ? none : new Set(tried), next: () => next })?.text).toBe(expected);
  });
});
