import { describe, expect, it } from "vitest";
import { clusterIPRules, destinationsFor, externalRules } from "./destinations.ts";
import type { PoolSizes, RuleContext } from "./destinations.ts";
import type { Rule } from "../model/rows.ts";
import { DEFAULT_SETTINGS } from "./node-context.ts";
import type { Service, ServiceAddresses, ServicePortSpec } from "../model/api-objects.ts";

/** A rule in short: `origin > target`, with `+masq`. */
function short(rules: readonly Rule[]): readonly string[] {
  return rules.map(({ from, to, masquerade }) => `${from} > ${to}${masquerade ? " +masq" : ""}`);
}

function node({ detector = true, masqueradeAll = false, addresses = ["172.18.0.1"] } = {}): RuleContext {
  return {
    addresses,
    detector: detector ? { by: "cidr", cidrs: ["10.1.0.0/16"] } : undefined,
    settings: { ...DEFAULT_SETTINGS, masqueradeAll },
  };
}

const PLENTY: PoolSizes = { cluster: 3, local: 1, hasUsableEndpoints: true };
const ELSEWHERE: PoolSizes = { cluster: 2, local: 0, hasUsableEndpoints: true };
const ELSEWHERE_LOCAL_ONLY: PoolSizes = { cluster: 0, local: 0, hasUsableEndpoints: true };
const NONE: PoolSizes = { cluster: 0, local: 0, hasUsableEndpoints: false };

describe("a cluster IP", () => {
  it.each([
    ["R-24 detector: pods as they are, the rest masqueraded", false, PLENTY, node(), ["offCluster > cluster +masq", "anyone > cluster"]],
    ["R-26 no detector: nobody is masqueraded", false, PLENTY, node({ detector: false }), ["anyone > cluster"]],
    ["R-25 masqueradeAll: everybody is", false, PLENTY, node({ masqueradeAll: true }), ["anyone > cluster +masq"]],
    ["R-25 masqueradeAll without a detector", false, PLENTY, node({ masqueradeAll: true, detector: false }), ["anyone > cluster +masq"]],
    ["R-22 Local policy uses the local pool", true, PLENTY, node(), ["offCluster > local +masq", "anyone > local"]],
    ["R-22 Local policy with masqueradeAll", true, PLENTY, node({ masqueradeAll: true }), ["anyone > local +masq"]],
    ["R-27 Local policy, endpoints elsewhere only", true, ELSEWHERE, node(), ["anyone > drop"]],
    ["R-27 Local policy, cluster pool never made", true, ELSEWHERE_LOCAL_ONLY, node({ masqueradeAll: true }), ["anyone > drop"]],
    ["R-22 Cluster policy does not ask where they are", false, ELSEWHERE, node(), ["offCluster > cluster +masq", "anyone > cluster"]],
    ["R-23 no endpoint anywhere", false, NONE, node(), ["anyone > reject"]],
    ["R-23 no endpoint anywhere, Local", true, NONE, node({ masqueradeAll: true }), ["anyone > reject"]],
  ])("%s", (_name, internalLocal, pools, context, expected) => {
    expect(short(clusterIPRules(internalLocal, pools, context))).toEqual(expected);
  });
});

describe("a node port, external or load-balancer IP", () => {
  const circuits = ["localPod > cluster", "thisHost > cluster +masq"];
  it.each([
    ["R-28 Cluster policy: always masqueraded", false, PLENTY, node(), ["anyone > cluster +masq"]],
    ["R-28 whatever detect-local", false, PLENTY, node({ detector: false }), ["anyone > cluster +masq"]],
    ["R-28 whatever masqueradeAll", false, PLENTY, node({ masqueradeAll: true }), ["anyone > cluster +masq"]],
    ["R-28 endpoints elsewhere only", false, ELSEWHERE, node(), ["anyone > cluster +masq"]],
    ["R-30 to R-32, R-35 Local policy: pods, then this host, then the world", true, PLENTY, node(), [...circuits, "anyone > local"]],
    ["R-30 masqueradeAll does not touch it", true, PLENTY, node({ masqueradeAll: true }), [...circuits, "anyone > local"]],
    [
      "R-33 Local policy, endpoints elsewhere: short circuits work, the world is dropped",
      true,
      ELSEWHERE,
      node(),
      [...circuits, "anyone > drop"],
    ],
    ["R-34 no detector: pods are the world", true, PLENTY, node({ detector: false }), ["thisHost > cluster +masq", "anyone > local"]],
    ["R-34 no detector, endpoints elsewhere", true, ELSEWHERE, node({ detector: false }), ["thisHost > cluster +masq", "anyone > drop"]],
    ["R-29 no endpoint anywhere", false, NONE, node(), ["anyone > reject"]],
    ["R-29 no endpoint anywhere, Local: everybody is told, pods and host too", true, NONE, node(), ["anyone > reject"]],
  ])("%s", (_name, externalLocal, pools, context, expected) => {
    expect(short(externalRules(externalLocal, pools, context))).toEqual(expected);
  });
});

const ADDRESSES: ServiceAddresses = {
  clusterIP: "10.96.0.1",
  externalIPs: ["198.51.100.1"],
  loadBalancerIPs: ["203.0.113.9", "203.0.113.10"],
  sourceRanges: [],
};
const PORT: ServicePortSpec = { name: "http", protocol: "TCP", port: 80, nodePort: 30080 };
const SERVICE: Service = {
  namespace: "shop",
  name: "cart",
  createdMs: 0,
  ports: [PORT],
  addresses: { IPv4: ADDRESSES },
  affinitySeconds: undefined,
  internalLocal: false,
  externalLocal: false,
  healthCheckNodePort: 0,
};

interface Change {
  readonly service?: Partial<Service>;
  readonly addresses?: Partial<ServiceAddresses>;
  readonly nodePort?: number;
  readonly pools?: PoolSizes;
  readonly context?: RuleContext;
}

function destinations({ service, addresses, nodePort = 30080, pools = PLENTY, context = node() }: Change = {}): ReturnType<
  typeof destinationsFor
> {
  return destinationsFor({ ...SERVICE, ...service }, { ...PORT, nodePort }, { ...ADDRESSES, ...addresses }, pools, context);
}

describe("where a service port answers", () => {
  it("each kind once, cluster IP first", () => {
    expect(destinations().map(({ kind, address, port }) => `${kind} ${address}:${port}`)).toEqual([
      "clusterIP 10.96.0.1:80",
      "externalIP 198.51.100.1:80",
      "loadBalancerIP 203.0.113.9:80",
      "loadBalancerIP 203.0.113.10:80",
      "nodePort :30080",
    ]);
  });

  it("no node port, nothing external", () => {
    expect(destinations({ nodePort: 0, addresses: { externalIPs: [], loadBalancerIPs: [] } }).map(({ kind }) => kind)).toEqual([
      "clusterIP",
    ]);
  });

  it("each kind obeys its own policy", () => {
    const found = destinations({ service: { internalLocal: true, externalLocal: false }, pools: ELSEWHERE });
    expect(found.map(({ kind, rules }) => `${kind}: ${short(rules).join(", ")}`)).toEqual([
      "clusterIP: anyone > drop",
      "externalIP: anyone > cluster +masq",
      "loadBalancerIP: anyone > cluster +masq",
      "loadBalancerIP: anyone > cluster +masq",
      "nodePort: anyone > cluster +masq",
    ]);
    const other = destinations({ service: { internalLocal: false, externalLocal: true }, pools: ELSEWHERE });
    expect(short(other[0]?.rules ?? [])).toEqual(["offCluster > cluster +masq", "anyone > cluster"]);
    expect(other.slice(1).map(({ rules }) => short(rules).at(-1))).toEqual(Array.from({ length: 4 }, () => "anyone > drop"));
  });

  it("an address that is both external and cluster IP is kept once", () => {
    expect(
      destinations({ addresses: { externalIPs: ["10.96.0.1", "198.51.100.1"] } }).filter(({ address }) => address === "10.96.0.1"),
    ).toMatchObject([{ kind: "clusterIP" }]);
  });
});

describe("R-39 source ranges", () => {
  const sourceRanges = ["10.0.0.0/8"];
  it("come before everything else, on load-balancer IPs only", () => {
    const found = destinations({ addresses: { sourceRanges } });
    expect(found.map(({ kind, rules, sourceRanges: ranges }) => [kind, short(rules)[0], ranges])).toEqual([
      ["clusterIP", "offCluster > cluster +masq", undefined],
      ["externalIP", "anyone > cluster +masq", undefined],
      ["loadBalancerIP", "outsideSourceRanges > drop", sourceRanges],
      ["loadBalancerIP", "outsideSourceRanges > drop", sourceRanges],
      ["nodePort", "anyone > cluster +masq", undefined],
    ]);
  });

  it("hold without endpoints too: dropped before rejected", () => {
    const found = destinations({ addresses: { sourceRanges }, pools: NONE });
    expect(short(found[2]?.rules ?? [])).toEqual(["outsideSourceRanges > drop", "anyone > reject"]);
  });

  it("an address that is external and load-balancer IP stays restricted", () => {
    const found = destinations({ addresses: { sourceRanges, externalIPs: ["203.0.113.9"] } });
    expect(found.filter(({ address }) => address === "203.0.113.9").map(({ rules }) => short(rules)[0])).toEqual([
      "outsideSourceRanges > drop",
    ]);
  });
});

describe("R-40 a range that holds this node lets the load-balancer IPs themselves in", () => {
  const rangesOf = (
    sourceRanges: readonly string[],
    addresses: readonly string[],
    loadBalancerIPs = ["203.0.113.9", "203.0.113.10"],
  ): unknown =>
    destinations({ addresses: { sourceRanges, loadBalancerIPs }, context: node({ addresses: [...addresses] }) })[2]?.sourceRanges;
  it.each([
    ["node in range", ["172.18.0.0/16"], ["172.18.0.1"], ["172.18.0.0/16", "203.0.113.9/32", "203.0.113.10/32"]],
    ["node outside", ["10.0.0.0/8"], ["172.18.0.1"], ["10.0.0.0/8"]],
    ["node unknown", ["172.18.0.0/16"], [], ["172.18.0.0/16"]],
    ["only the node's first address counts", ["172.19.0.0/16"], ["172.18.0.1", "172.19.0.1"], ["172.19.0.0/16"]],
    ["already covered", ["172.18.0.0/16", "203.0.113.0/24"], ["172.18.0.1"], ["172.18.0.0/16", "203.0.113.0/24"]],
    ["everybody", ["0.0.0.0/0"], ["172.18.0.1"], ["0.0.0.0/0"]],
  ])("%s", (_name, ranges, addresses, expected) => expect(rangesOf(ranges, addresses)).toEqual(expected));

  it("in IPv6", () => {
    expect(rangesOf(["fd00:18::/64"], ["fd00:18::1"], ["fd00:203::9"])).toEqual(["fd00:18::/64", "fd00:203::9/128"]);
  });
});
