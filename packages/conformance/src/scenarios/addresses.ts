import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, refs, service, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, asksUnmasked, NODE1, nodePortOf } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const WEB = service("web", { number: 1, ways: WAYS });
const FIRST = addressesOf(1, "clusterIP");

/** External and load-balancer IPs: which count, and how addresses are written. */
export const ADDRESSES: readonly Scenario[] = [
  {
    name: "a Service may have several external and load-balancer IPs",
    rules: ["R-05", "R-06"],
    steps: [
      {
        say: "two of each, one of them twice",
        put: [
          {
            ...service("web", {
              number: 1,
              spec: {
                externalIPs: [2, 3, 2].flatMap((number) => Object.values(addressesOf(number, "externalIP"))),
                externalTrafficPolicy: "Local",
              },
            }),
            status: {
              loadBalancer: {
                ingress: [4, 5].flatMap((number) =>
                  Object.values(addressesOf(number, "loadBalancerIP")).map((ip) => ({ ip, ipMode: "VIP" })),
                ),
              },
            },
          },
          ...slices("web", ["pod-1-1", "pod-2-1"]),
        ],
        probes: [
          ...asks(
            "client1",
            [2, 3].map((number) => addressesOf(number, "externalIP")),
            "pod-1-1 saw client1",
            { port: 80 },
          ),
          ...asks(
            "client1",
            [4, 5].map((number) => addressesOf(number, "loadBalancerIP")),
            "pod-1-1 saw client1",
            { port: 80 },
          ),
        ],
      },
      {
        say: "one of the external ones remains",
        put: [service("web", { number: 1, spec: { externalIPs: Object.values(addressesOf(3, "externalIP")) } })],
        probes: [
          ...asks("client1", addressesOf(3, "externalIP"), "pod-1-1 pod-2-1 saw node1", { port: 80 }),
          ...asks("client1", [addressesOf(2, "externalIP"), addressesOf(4, "loadBalancerIP")], "untouched", { port: 80 }),
        ],
      },
    ],
  },
  {
    name: "a load balancer that wants its packets for itself gets them",
    rules: ["R-06"],
    subtleties: [11],
    steps: [
      {
        say: "its address is ours to serve",
        put: [service("web", { number: 1, ways: WAYS, ipMode: "VIP" }), ...slices("web", ["pod-1-1"])],
        probes: asks(EVERY_CLIENT, "web loadBalancerIP", "pod-1-1 saw node1"),
      },
      {
        say: "it becomes the load balancer's",
        put: [service("web", { number: 1, ways: WAYS, ipMode: "Proxy" })],
        probes: [
          ...asks(EVERY_CLIENT, "web loadBalancerIP", "untouched"),
          ...asks("client1", ["web clusterIP", "web nodePort@node1", "web externalIP"], "pod-1-1 saw node1"),
        ],
      },
      { say: "without endpoints too", put: slices("web", []), probes: asks("client1 pod-1-3", "web loadBalancerIP", "untouched") },
      {
        say: "it has a name instead of an address",
        put: [{ ...WEB, status: { loadBalancer: { ingress: [{ hostname: "lb.example.org" }] } } }, ...slices("web", ["pod-1-1"])],
        probes: asks("client1 pod-1-3", addressesOf(1, "loadBalancerIP"), "untouched", { port: 80 }),
      },
      { say: "it has an address again", put: [WEB], probes: asks(EVERY_CLIENT, "web loadBalancerIP", "pod-1-1 saw node1") },
    ],
  },
  {
    name: "a load balancer's address counts whatever the Service's type, with node ports or without",
    rules: ["R-06"],
    steps: [
      {
        say: "LoadBalancer without node ports",
        put: [
          service("web", { number: 1, ways: ["loadBalancerIP"], spec: { allocateLoadBalancerNodePorts: false } }),
          ...slices("web", ["pod-1-1"]),
        ],
        probes: [
          ...asks("client1", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
        ],
      },
      {
        say: "NodePort with an address left in its status",
        put: [service("web", { number: 1, ways: ["nodePort", "loadBalancerIP"], spec: { type: "NodePort" } })],
        probes: asks("client1", ["web loadBalancerIP", "web nodePort@node1"], "pod-1-1 saw node1"),
      },
      {
        say: "the status is emptied",
        put: [service("web", { number: 1, ways: ["nodePort"] })],
        probes: asks("client1", addressesOf(1, "loadBalancerIP"), "untouched", { port: 80 }),
      },
    ],
  },
  {
    name: "one address may be external and load-balancer IP at once",
    rules: ["R-05", "R-06", "R-28"],
    steps: [
      {
        say: "the load balancer's address is an external IP too",
        put: [
          service("web", { number: 1, ways: ["loadBalancerIP"], spec: { externalIPs: Object.values(addressesOf(1, "loadBalancerIP")) } }),
          ...slices("web", ["pod-1-1"]),
        ],
        probes: asks("client1 pod-1-3", "web loadBalancerIP", "pod-1-1 saw node1"),
      },
      {
        say: "only the external IP is left",
        put: [service("web", { number: 1, spec: { externalIPs: Object.values(addressesOf(1, "loadBalancerIP")) } })],
        probes: asks("client1", addressesOf(1, "loadBalancerIP"), "pod-1-1 saw node1", { port: 80 }),
      },
      { say: "gone", remove: refs("web"), probes: asks("client1", addressesOf(1, "loadBalancerIP"), "untouched", { port: 80 }) },
    ],
  },
  {
    name: "addresses mean the same however they are written",
    rules: ["R-09", "R-15"],
    subtleties: [15],
    steps: [
      {
        say: "leading zeros, capitals, IPv4 in IPv6 clothes",
        put: [
          service("web", {
            number: 1,
            spec: {
              clusterIP: "010.096.000.001",
              clusterIPs: ["010.096.000.001", "FD00:0096:0:0::0001"],
              externalIPs: ["::ffff:198.51.100.1", "FD00:198:0:0:0:0:0:1"],
            },
          }),
          ...slices("web", ["pod-1-1"], "1", {}).map((slice) => ({
            ...slice,
            endpoints: [
              { addresses: [slice["addressType"] === "IPv4" ? "010.001.001.001" : "FD00:1:1:0::01"], nodeName: "node1" },
              { addresses: [slice["addressType"] === "IPv4" ? "10.1.1.1" : "fd00:1:1::1"], nodeName: "node1" },
            ],
          })),
        ],
        probes: [
          ...asksUnmasked("pod-1-3", FIRST, "pod-1-1", { port: 80 }),
          ...asks("pod-1-1", FIRST, "pod-1-1 saw node1", { port: 80 }),
          ...asks("client1", addressesOf(1, "externalIP"), "pod-1-1 saw node1", { port: 80 }),
        ],
      },
      {
        say: "written as usual",
        put: [service("web", { number: 1, ways: ["externalIP"] }), ...slices("web", ["pod-1-1"])],
        probes: asks("client1", ["web clusterIP", "web externalIP"], "pod-1-1 saw node1"),
      },
    ],
  },
];
