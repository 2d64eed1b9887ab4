import { POD_SETTINGS } from "@turnout/core/testing";
import type { Destination, Endpoint, NodeContext, ServicePort } from "@turnout/core";
import { assert, boolean, constantFrom, integer, property, record, tuple, uniqueArray } from "fast-check";
import { describe, expect, it } from "vitest";
import type { WinkernelFacts } from "./facts.ts";
import { LB_FLAG, PORT_FLAG } from "./hns/flags.ts";
import { readFrontend } from "./objects.ts";
import type { WinkernelObject } from "./objects.ts";
import { winkernelModule } from "./module.ts";
import { macOf, renderRow } from "./render.ts";

const NODE: NodeContext = {
  name: "node1",
  family: "IPv4",
  addresses: ["172.18.0.1"],
  zone: "",
  podCIDRs: [],
  serviceCIDRs: [],
  detector: undefined,
  settings: POD_SETTINGS,
};
const FACTS: WinkernelFacts = {
  network: "l2bridge",
  remoteSubnets: [{ prefix: "10.1.2.0/24", provider: "172.18.0.2" }],
  addresses: { IPv4: ["172.18.0.1"], IPv6: [] },
  macs: { "172.18.0.1": "00-15-5d-01-02-03" },
  hasDSR: true,
};

const endpoints = uniqueArray(tuple(constantFrom("10.1.1", "10.1.2", "192.0.2"), integer({ min: 1, max: 9 })), {
  selector: (one) => one.join("."),
  maxLength: 6,
}).map((all) =>
  all.map(([net, last]): Endpoint => {
    const isLocal = net === "10.1.1";
    const nodeName = isLocal ? "node1" : "node2";
    return { ip: `${net}.${last}`, port: 8080, nodeName, isLocal, ready: true, serving: true, terminating: false };
  }),
);
const destination = record({
  kind: constantFrom("clusterIP", "externalIP", "loadBalancerIP", "nodePort" as const),
  last: integer({ min: 1, max: 3 }),
  port: constantFrom(80, 443),
  to: constantFrom("cluster", "local", "reject", "drop" as const),
  masquerade: boolean(),
}).map(({ kind, last, port, to, masquerade }): Destination => {
  const address = kind === "nodePort" ? "" : `${kind === "clusterIP" ? "10.96.0" : "198.51.100"}.${last}`;
  return { kind, address, port: kind === "nodePort" ? 30_000 + port : port, rules: [{ from: "anyone", to, masquerade }] };
});
// A row is one port of a Service, so it has an address once.
const destinations = uniqueArray(destination, { selector: ({ address }) => address, maxLength: 4 });
const options = record({ enableDSR: boolean(), forwardHealthCheckVip: boolean(), sourceVip: constantFrom("", "10.1.1.200") }).map((raw) =>
  winkernelModule.parseOptions({ ...raw, ...(raw.enableDSR ? {} : { "preserve-destination": ["shop/cart"] }) }),
);
const scene = record({ all: endpoints, destinations, options, isOverlay: boolean(), isAffine: boolean() });

function rowOf(all: readonly Endpoint[], wanted: readonly Destination[], isAffine: boolean): ServicePort {
  return {
    key: "shop/cart:http/TCP",
    name: { namespace: "shop", name: "cart", port: "http", protocol: "TCP" },
    family: "IPv4",
    createdMs: 0,
    endpoints: all,
    cluster: all.map((_, index) => index),
    local: all.flatMap(({ isLocal }, index) => (isLocal ? [index] : [])),
    topology: "",
    destinations: wanted,
    affinitySeconds: isAffine ? 10 : undefined,
    internalLocal: false,
    externalLocal: false,
    healthCheck: undefined,
  };
}

describe("whatever a row is", () => {
  it("each load balancer and endpoint is one that HNS is sent, with endpoints that are there, once", () => {
    assert(
      property(scene, ({ all, destinations: wanted, options: given, isOverlay, isAffine }) => {
        const facts: WinkernelFacts = { ...FACTS, network: isOverlay ? "overlay" : "l2bridge" };
        const objects = renderRow(rowOf(all, wanted, isAffine), { node: NODE, host: facts }, given);
        const keys = objects.map(({ kind, key }) => `${kind} ${key}`);
        expect(new Set(keys).size).toBe(keys.length);
        expect(objects.flatMap((object) => faultsOf(object, keys, isOverlay))).toEqual([]);
      }),
    );
  });

  it("the order of endpoints decides nothing", () => {
    assert(
      property(scene, ({ all, destinations: wanted, options: given, isAffine }) => {
        const context = { node: NODE, host: FACTS };
        const [one, other] = [all, all.toReversed()].map((some) => sorted(renderRow(rowOf(some, wanted, isAffine), context, given)));
        expect(other).toEqual(one);
      }),
    );
  });
});

function sorted(objects: readonly WinkernelObject[]): readonly WinkernelObject[] {
  return objects.toSorted((a, b) => (`${a.kind} ${a.key}` < `${b.kind} ${b.key}` ? -1 : 1));
}

/** Say what is wrong with an object. */
function faultsOf(object: WinkernelObject, keys: readonly string[], isOverlay: boolean): readonly string[] {
  switch (object.kind) {
    case "endpoint":
      return (object.value.provider !== "") === isOverlay ? [] : [`${object.key}: provider ${object.value.provider}`];
    case "source-vip":
      return [`${object.key}: a row makes none`];
    case "loadbalancer": {
      const { endpoints: named, sourceVip, flags, portFlags } = object.value;
      const { vip } = readFrontend(object.key);
      const has = (flag: number): boolean => (portFlags & flag) !== 0;
      const missing = named.filter((ip) => !ip.startsWith("@") && !keys.includes(`endpoint ${ip}`));
      return [
        ...missing.map((ip) => `${object.key}: no endpoint ${ip}`),
        ...(isOverlay || sourceVip === "" ? [] : [`${object.key}: a source`]),
        ...(named.length > 0 && new Set(named).size === named.length ? [] : [`${object.key}: endpoints ${named.join()}`]),
        ...((flags & LB_FLAG.ipv6) === 0 && (vip === "") === has(PORT_FLAG.localRoutedVip)
          ? []
          : [`${object.key}: flags ${flags} ${portFlags}`]),
        ...(has(PORT_FLAG.useMux) === has(PORT_FLAG.preserveDip) ? [] : [`${object.key}: half of what preserves the destination`]),
      ];
    }
  }
}

it.each([
  ["10.1.2.3", "02-11-0a-01-02-03"],
  ["255.0.0.1", "02-11-ff-00-00-01"],
  ["fd00:1:2::a0b:c0d", "02-11-0d-0c-0b-0a"],
])("the MAC address of %s is %s", (ip, mac) => {
  expect(macOf(ip)).toBe(mac);
});
