import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, refs, service, servicePorts, sliceRefs, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, asksUnmasked, EVERY_WAY, OUTSIDE_WAYS } from "./probes.ts";

const THREE = "pod-1-1 pod-1-2 pod-2-1";
const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;

/** Packets to cluster IPs: which pool, which source, and what is refused or dropped. */
export const CLUSTER_IPS: readonly Scenario[] = [
  {
    name: "a cluster IP is served by every ready endpoint, whoever asks",
    rules: ["R-22", "R-24", "R-36"],
    steps: [
      {
        say: "a service with three endpoints",
        put: [service("web", { number: 1 }), ...slices("web", ["pod-1-1", "pod-1-2", "pod-2-1"])],
        probes: [
          ...asks("pod-1-3", "web clusterIP", `${THREE} saw pod-1-3`),
          ...asks("node1", "web clusterIP", `${THREE} saw node1`),
          ...asks("client1 client2", "web clusterIP", `${THREE} saw node1`),
          ...asks("pod-1-1", "web clusterIP", "pod-1-1 saw node1, pod-1-2 pod-2-1 saw pod-1-1"),
        ],
      },
      {
        say: "one endpoint goes, another one comes",
        put: slices("web", ["pod-1-2", "pod-2-1", "pod-2-2"]),
        probes: [
          ...asksUnmasked("pod-1-1 pod-1-3", "web clusterIP", "pod-1-2 pod-2-1 pod-2-2"),
          ...asks("client1", "web clusterIP", "pod-1-2 pod-2-1 pod-2-2 saw node1"),
        ],
      },
    ],
  },
  {
    name: "a cluster IP under the Local internal policy is served by this node alone",
    rules: ["R-22", "R-23", "R-27", "R-21"],
    subtleties: [4, 5, 24],
    steps: [
      {
        say: "endpoints here and there, policy Cluster",
        put: [service("web", { number: 1, ways: WAYS }), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
          ...asks("node1", "web clusterIP", "pod-1-1 pod-2-1 saw node1"),
        ],
      },
      {
        say: "the policy becomes Local",
        put: [service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local" } })],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
          ...asks("pod-1-1", "web clusterIP", "pod-1-1 saw node1"),
          ...asks("node1 client1", "web clusterIP", "pod-1-1 saw node1"),
          ...asks(EVERY_CLIENT, OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1"),
        ],
      },
      {
        say: "the endpoint here goes",
        put: slices("web", ["pod-2-1"]),
        probes: [...asks(EVERY_CLIENT, "web clusterIP", "dropped"), ...asks(EVERY_CLIENT, OUTSIDE_WAYS, "pod-2-1 saw node1")],
      },
      { say: "the last one goes", put: slices("web", []), probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
      {
        say: "one comes here",
        put: slices("web", ["pod-1-2"]),
        probes: [...asks("pod-1-3", "web clusterIP", "pod-1-2 saw pod-1-3"), ...asks("client1", EVERY_WAY, "pod-1-2 saw node1")],
      },
      {
        say: "the policy becomes Cluster again, and one comes elsewhere",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Cluster" } }),
          ...slices("web", ["pod-1-2", "pod-2-3"]),
        ],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-2 pod-2-3 saw pod-1-3"),
          ...asks("client1", "web clusterIP", "pod-1-2 pod-2-3 saw node1"),
        ],
      },
    ],
  },
  {
    name: "a cluster IP reaches servers on the hosts' own network",
    rules: ["R-22", "R-24"],
    steps: [
      {
        say: "the other node serves",
        put: [service("web", { number: 1 }), ...slices("web", ["node2"])],
        probes: [...asks("pod-1-3", "web clusterIP", "node2 saw pod-1-3"), ...asks("node1 client1", "web clusterIP", "node2 saw node1")],
      },
      {
        say: "this node serves, with the Local internal policy",
        put: [service("web", { number: 1, spec: { internalTrafficPolicy: "Local" } }), ...slices("web", ["node1", "node2"])],
        probes: [...asks("pod-1-3", "web clusterIP", "node1 saw pod-1-3"), ...asks("node1", "web clusterIP", "node1 saw node1")],
      },
    ],
  },
  {
    name: "with masqueradeAll nobody's address is seen behind a cluster IP",
    rules: ["R-25", "R-30", "R-31"],
    subtleties: [9],
    settings: { masqueradeAll: true },
    steps: [
      {
        say: "a service with all ways and the Local external policy",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-1-1", "pod-2-1"]),
        ],
        probes: [
          ...asks("pod-1-1 pod-1-3 node1 client1", "web clusterIP", "pod-1-1 pod-2-1 saw node1"),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw pod-1-3"),
        ],
      },
      {
        say: "the Local internal policy too",
        put: [service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" } })],
        probes: asks("pod-1-3 node1 client1", "web clusterIP", "pod-1-1 saw node1"),
      },
    ],
  },
  {
    name: "a port nobody defined on a cluster IP is refused",
    rules: ["R-47", "R-04"],
    steps: [
      {
        say: "a service on port 80",
        put: [service("web", { number: 1, ways: ["externalIP", "loadBalancerIP"] }), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks(EVERY_CLIENT, "web clusterIP", "refused", { port: 81 }),
          ...asks("client1", ["web externalIP", "web loadBalancerIP"], "untouched", { port: 81 }),
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
        ],
      },
      {
        say: "port 81 is added",
        put: [service("web", { number: 1, spec: { ports: servicePorts({ name: "a", port: 80 }, { name: "b", port: 81 }) } })],
        probes: [
          ...asks(EVERY_CLIENT, "web clusterIP", "refused", { port: 81 }),
          ...asks(EVERY_CLIENT, "web clusterIP", "refused", { port: 82 }),
        ],
      },
      {
        say: "without endpoints",
        put: [service("web", { number: 1 })],
        remove: sliceRefs("web"),
        probes: asks(EVERY_CLIENT, "web clusterIP", "refused", { port: 81 }),
      },
    ],
  },
  ...(["TCP", "UDP", "SCTP"] as const).map((other): Scenario => {
    const protocols = (["TCP", "UDP", "SCTP"] as const).filter((protocol) => protocol !== other);
    return {
      name: `a cluster IP that only serves other protocols refuses ${other}`,
      rules: ["R-04", "R-47"],
      protocols: [other],
      steps: [
        {
          say: `a service without ${other}`,
          put: [
            service("web", { number: 1, spec: { ports: servicePorts({ name: "x", port: 80, protocols }) } }),
            ...slices("web", ["pod-1-1"], "1", {
              ports: protocols.map((protocol) => ({ name: `x-${protocol.toLowerCase()}`, protocol, port: 8080 })),
            }),
          ],
          probes: asks(EVERY_CLIENT, "web clusterIP", "refused"),
        },
        {
          say: `${other} is added`,
          put: [service("web", { number: 1 }), ...slices("web", ["pod-1-1"])],
          probes: asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
        },
      ],
    };
  }),
  {
    name: "a service address nobody has is dropped",
    rules: ["R-48", "R-62", "R-54"],
    steps: [
      { say: "no service at all", probes: asks(EVERY_CLIENT, addressesOf(9, "clusterIP"), "dropped", { port: 80 }) },
      {
        say: "one is there",
        put: [service("web", { number: 9 }), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("pod-1-3", addressesOf(9, "clusterIP"), "pod-1-1 saw pod-1-3", { port: 80 }),
          ...asks(EVERY_CLIENT, addressesOf(10, "clusterIP"), "dropped", { port: 80 }),
        ],
      },
      { say: "and gone", remove: refs("web"), probes: asks(EVERY_CLIENT, addressesOf(9, "clusterIP"), "dropped", { port: 80 }) },
    ],
  },
  {
    name: "a service address that the node has itself is the node's own",
    rules: ["R-47", "R-48"],
    hostAddresses: {
      IPv4: [addressesOf(8, "clusterIP").IPv4, addressesOf(9, "clusterIP").IPv4],
      IPv6: [addressesOf(8, "clusterIP").IPv6, addressesOf(9, "clusterIP").IPv6],
    },
    steps: [
      {
        say: "one is a service's, as with a DNS cache on the node, the other nobody's",
        put: [service("dns", { number: 8 }), ...slices("dns", ["pod-1-1"])],
        probes: [
          ...asks("pod-1-3 node1", "dns clusterIP", "untouched", { port: 81 }),
          ...asks("pod-1-3 node1", addressesOf(9, "clusterIP"), "untouched", { port: 80 }),
          ...asks("pod-1-3", "dns clusterIP", "pod-1-1 saw pod-1-3"),
        ],
      },
    ],
  },
];
