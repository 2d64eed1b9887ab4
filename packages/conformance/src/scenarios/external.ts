import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, service, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, EVERY_WAY, OUTSIDE_WAYS } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const LOCAL = service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Local" } });
const CLUSTER = service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Cluster" } });
const BOTH_LOCAL = service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Local", internalTrafficPolicy: "Local" } });

/** Packets to node ports, external and load-balancer IPs under both policies. */
export const EXTERNAL: readonly Scenario[] = [
  {
    name: "node ports, external and load-balancer IPs lead anywhere with the node's address under the Cluster policy",
    rules: ["R-28", "R-29"],
    subtleties: [9],
    steps: [
      {
        say: "endpoints here and there",
        put: [CLUSTER, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks(`pod-1-1 pod-1-3 node1 client1 client2`, OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1"),
      },
      { say: "only elsewhere", put: slices("web", ["pod-2-1"]), probes: asks(EVERY_CLIENT, OUTSIDE_WAYS, "pod-2-1 saw node1") },
      { say: "only here", put: slices("web", ["pod-1-1"]), probes: asks(`pod-1-1 ${EVERY_CLIENT}`, OUTSIDE_WAYS, "pod-1-1 saw node1") },
      { say: "nowhere", put: slices("web", []), probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
    ],
  },
  {
    name: "a pod of another node that asks a node port here sees the service with the node's address",
    rules: ["R-28"],
    steps: [
      {
        say: "endpoints here and there",
        put: [CLUSTER, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("pod-2-3 node2", "web nodePort@node1", "pod-1-1 pod-2-1 saw node1"),
      },
    ],
  },
  {
    name: "the Local external policy keeps the client's address and stays on the node",
    rules: ["R-30", "R-31", "R-32", "R-36", "R-21"],
    subtleties: [3, 5],
    steps: [
      {
        say: "endpoints here and there",
        put: [LOCAL, ...slices("web", ["pod-1-1", "pod-1-2", "pod-2-1"])],
        probes: [
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 pod-1-2 saw client1"),
          ...asks("client2", OUTSIDE_WAYS, "pod-1-1 pod-1-2 saw client2"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-1 pod-1-2 pod-2-1 saw pod-1-3"),
          ...asks("pod-1-1", OUTSIDE_WAYS, "pod-1-1 saw node1, pod-1-2 pod-2-1 saw pod-1-1"),
          ...asks("node1", OUTSIDE_WAYS, "pod-1-1 pod-1-2 pod-2-1 saw node1"),
          ...asks("client1", "web clusterIP", "pod-1-1 pod-1-2 pod-2-1 saw node1"),
        ],
      },
      {
        say: "only elsewhere",
        put: slices("web", ["pod-2-1", "pod-2-2"]),
        probes: [
          ...asks("client1 client2", OUTSIDE_WAYS, "dropped"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 pod-2-2 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-2-1 pod-2-2 saw node1"),
          ...asks("client1", "web clusterIP", "pod-2-1 pod-2-2 saw node1"),
        ],
      },
      { say: "nowhere", put: slices("web", []), probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
      { say: "here again", put: slices("web", ["pod-1-2"]), probes: asks("client1", OUTSIDE_WAYS, "pod-1-2 saw client1") },
    ],
  },
  {
    name: "external and load-balancer IPs that the node has itself keep to the Local external policy",
    rules: ["R-30", "R-31", "R-32", "R-33"],
    hostAddresses: {
      IPv4: [addressesOf(1, "externalIP").IPv4, addressesOf(1, "loadBalancerIP").IPv4],
      IPv6: [addressesOf(1, "externalIP").IPv6, addressesOf(1, "loadBalancerIP").IPv6],
    },
    steps: [
      {
        say: "endpoints here and there",
        put: [LOCAL, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1"),
        ],
      },
      {
        say: "only elsewhere",
        put: slices("web", ["pod-2-1"]),
        probes: [
          ...asks("client1", OUTSIDE_WAYS, "dropped"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-2-1 saw node1"),
        ],
      },
    ],
  },
  {
    name: "under the Local external policy another node is outside, and pods elsewhere are pods",
    rules: ["R-30", "R-31", "R-33"],
    subtleties: [3],
    steps: [
      {
        say: "endpoints here and there",
        put: [LOCAL, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("node2", OUTSIDE_WAYS, "pod-1-1 saw node2"),
          ...asks("pod-2-3", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw pod-2-3"),
          ...asks("pod-2-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-2-3"),
          ...asks("node2", "web clusterIP", "pod-1-1 pod-2-1 saw node1"),
        ],
      },
      {
        say: "only elsewhere",
        put: slices("web", ["pod-2-1"]),
        probes: [...asks("node2", OUTSIDE_WAYS, "dropped"), ...asks("pod-2-3", OUTSIDE_WAYS, "pod-2-1 saw pod-2-3")],
      },
    ],
  },
  {
    name: "with both policies Local and no endpoint here only pods and the host get through from outside addresses",
    rules: ["R-27", "R-31", "R-32", "R-33", "R-21"],
    subtleties: [3, 4, 5, 24],
    steps: [
      {
        say: "only elsewhere",
        put: [BOTH_LOCAL, ...slices("web", ["pod-2-1"])],
        probes: [
          ...asks(EVERY_CLIENT, "web clusterIP", "dropped"),
          ...asks("client1", OUTSIDE_WAYS, "dropped"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-2-1 saw node1"),
        ],
      },
      {
        say: "one comes here",
        put: slices("web", ["pod-2-1", "pod-1-1"]),
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1"),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1"),
        ],
      },
    ],
  },
  {
    name: "a change of the external policy is followed",
    rules: ["R-28", "R-30", "R-33"],
    steps: [
      {
        say: "Local",
        put: [LOCAL, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1"),
      },
      { say: "Cluster", put: [CLUSTER], probes: asks("client1 pod-1-3", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1") },
      {
        say: "Local, and the endpoint here goes",
        put: [LOCAL, ...slices("web", ["pod-2-1"])],
        probes: [...asks("client1", OUTSIDE_WAYS, "dropped"), ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 saw pod-1-3")],
      },
      { say: "Cluster again", put: [CLUSTER], probes: asks("client1", OUTSIDE_WAYS, "pod-2-1 saw node1") },
    ],
  },
  {
    name: "the external policy means nothing to a Service nobody reaches from outside",
    rules: ["R-10", "R-22"],
    steps: [
      {
        say: "ClusterIP with the Local external policy, and a load balancer's address in its status",
        put: [
          service("web", { number: 1, ways: ["loadBalancerIP"], spec: { type: "ClusterIP", externalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-2-1"]),
        ],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-2-1 saw pod-1-3"),
          ...asks("client1 pod-1-3 node1", "web loadBalancerIP", "pod-2-1 saw node1"),
        ],
      },
      {
        say: "with an external IP it can be reached",
        put: [
          service("web", {
            number: 1,
            ways: ["externalIP", "loadBalancerIP"],
            spec: { type: "ClusterIP", externalTrafficPolicy: "Local" },
          }),
        ],
        probes: [
          ...asks("client1", ["web externalIP", "web loadBalancerIP"], "dropped"),
          ...asks("pod-1-3", ["web externalIP", "web loadBalancerIP"], "pod-2-1 saw pod-1-3"),
        ],
      },
    ],
  },
  {
    name: "an external IP that is the node's own serves its port and leaves the rest alone",
    rules: ["R-05", "R-28"],
    steps: [
      {
        say: "a service with the node's address as its external IP",
        put: [service("web", { number: 1, spec: { externalIPs: ["172.18.0.1", "fd00:18::1"] } }), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("client1 pod-1-3", { IPv4: "172.18.0.1", IPv6: "fd00:18::1" }, "pod-1-1 pod-2-1 saw node1", { port: 80 }),
          ...asks("client1", { IPv4: "172.18.0.1", IPv6: "fd00:18::1" }, "untouched", { port: 81 }),
        ],
      },
    ],
  },
  {
    name: "addresses outside the service ranges that nobody has are left alone, and so are other ports of those somebody has",
    rules: ["R-48", "R-62"],
    subtleties: [24],
    steps: [
      {
        say: "a service with all ways",
        put: [CLUSTER, ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("client1", addressesOf(2, "externalIP"), "untouched", { port: 80 }),
          ...asks("client1", ["web externalIP", "web loadBalancerIP"], "untouched", { port: 81 }),
          ...asks("client1", "web nodePort@node1", "untouched", { port: 30_002 }),
          ...asks("client1", "web externalIP", "untouched", { port: 30_001 }),
        ],
      },
    ],
  },
];
