import { rawNode, rawServiceCIDR } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, service, slices } from "../runner/short.ts";
import { STAGE_OBJECTS } from "../runner/stage.ts";
import { EVERY_CLIENT, asks, asksUnmasked, EVERY_WAY, OUTSIDE_WAYS } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const LOCAL = service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Local" } });
const NODE = { zone: "zone-a", addresses: ["172.18.0.1", "fd00:18::1"], podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] };
const KUBERNETES = STAGE_OBJECTS.filter(({ kind }) => kind === "ServiceCIDR");
const MORE = { IPv4: "10.97.0.9", IPv6: "fd00:97::9" };

/** node1 with other metadata. */
function nodeWith(metadata: RawObject): RawObject {
  const node = rawNode("node1", NODE);
  return { ...node, metadata: { ...(node["metadata"] as RawObject), ...metadata } };
}

/** The same packets, however the node is. */
const AS_EVER = [
  ...asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1"),
  ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw pod-1-3"),
  ...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1"),
];

/** The node itself and the service ranges. */
export const NODE_FACTS: readonly Scenario[] = [
  {
    name: "a node that leaves the cluster serves as ever",
    rules: ["R-60"],
    steps: [
      { say: "a service", put: [LOCAL, ...slices("web", ["pod-1-1", "pod-2-1"])], probes: AS_EVER },
      {
        say: "the autoscaler taints the node",
        put: [rawNode("node1", { ...NODE, taints: [{ key: "ToBeDeletedByClusterAutoscaler", value: "1", effect: "NoSchedule" }] })],
        probes: AS_EVER,
      },
      { say: "the node is being deleted", put: [nodeWith({ deletionTimestamp: "2024-01-01T00:00:00Z" })], probes: AS_EVER },
      { say: "it stays after all", put: [rawNode("node1", NODE)], probes: AS_EVER },
    ],
  },
  {
    name: "a node's primary address is its first internal one",
    rules: ["R-61", "R-38"],
    steps: [
      {
        say: "an external address is listed first",
        put: [
          {
            ...rawNode("node1", NODE),
            status: {
              addresses: [
                { type: "ExternalIP", address: "203.0.113.200" },
                { type: "ExternalIP", address: "fd00:203::c8" },
                { type: "Hostname", address: "node1" },
                { type: "InternalIP", address: "172.18.0.1" },
                { type: "InternalIP", address: "fd00:18::1" },
              ],
            },
          },
          LOCAL,
          ...slices("web", ["pod-1-1", "pod-2-1"]),
        ],
        probes: AS_EVER,
      },
      { say: "as before", put: [rawNode("node1", NODE)], probes: AS_EVER },
    ],
  },
  {
    name: "another node's changes are nothing to this one",
    rules: ["R-57", "R-61"],
    steps: [
      { say: "a service", put: [LOCAL, ...slices("web", ["pod-1-1", "pod-2-1"])], probes: AS_EVER },
      {
        say: "a third node comes, in this node's zone",
        put: [rawNode("node3", { zone: "zone-a", addresses: ["172.18.0.3", "fd00:18::3"], podCIDRs: ["10.1.3.0/24", "fd00:1:3::/64"] })],
        probes: AS_EVER,
      },
      { say: "and goes", remove: [{ kind: "Node", namespace: "", name: "node3" }], probes: AS_EVER },
    ],
  },
  {
    name: "service ranges are those of all objects together",
    rules: ["R-62", "R-48"],
    steps: [
      {
        say: "an address outside all ranges",
        put: [service("web", { number: 1, ways: WAYS }), ...slices("web", ["pod-1-1"])],
        probes: asks("pod-1-3 node1", MORE, "untouched", { port: 80 }),
      },
      {
        say: "a second object adds its range",
        put: [rawServiceCIDR("more", ["10.97.0.0/16", "fd00:97::/112"])],
        probes: [
          ...asks("pod-1-3 node1", MORE, "dropped", { port: 80 }),
          ...asks("pod-1-3 node1", addressesOf(9, "clusterIP"), "dropped", { port: 80 }),
          ...asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
        ],
      },
      {
        say: "it goes",
        remove: [{ kind: "ServiceCIDR", namespace: "", name: "more" }],
        probes: [
          ...asks("pod-1-3 node1", MORE, "untouched", { port: 80 }),
          ...asks("pod-1-3 node1", addressesOf(9, "clusterIP"), "dropped", { port: 80 }),
        ],
      },
      {
        say: "no ranges are known",
        remove: [{ kind: "ServiceCIDR", namespace: "", name: "kubernetes" }],
        probes: [
          ...asks("pod-1-3 node1", addressesOf(9, "clusterIP"), "untouched", { port: 80 }),
          ...asks(EVERY_CLIENT, "web clusterIP", "refused", { port: 81 }),
          ...asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
        ],
      },
      { say: "they are known again", put: KUBERNETES, probes: asks(EVERY_CLIENT, addressesOf(9, "clusterIP"), "dropped", { port: 80 }) },
    ],
  },
];
