import { rawNode } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { service, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, NODE1, nodePortOf } from "./probes.ts";

const WEB = service("web", { number: 1, ways: ["nodePort"] });
const LOOPBACK = { IPv4: "127.0.0.1", IPv6: "::1" };
const NODE2 = { IPv4: "172.18.0.2", IPv6: "fd00:18::2" };
const SECOND = { IPv4: "192.0.2.1", IPv6: "fd00:192::1" };
const SECOND_ONLY = { hostAddresses: { IPv4: [SECOND.IPv4], IPv6: [SECOND.IPv6] } };
const port = nodePortOf(1);
const served = "pod-1-1 pod-2-1 saw node1";

/** On which of its addresses a node answers node ports, for each way to choose them. */
const CHOICES: readonly (readonly [string, readonly string[], string, string])[] = [
  ["the primary address", ["primary"], served, "untouched"],
  ["an address in a range", ["192.0.2.0/24", "fd00:192::/64"], "untouched", served],
  ["the primary address and a range", ["primary", "192.0.2.1/32", "fd00:192::1/128"], served, served],
  ["all, by the word", ["all"], served, served],
  ["all, by ranges of everything", ["0.0.0.0/0", "::/0"], served, served],
  ["all, by a range of everything among others", ["192.0.2.0/24", "0.0.0.0/0", "fd00:192::/64", "::/0"], served, served],
  ["none that the node has", ["203.0.113.0/24", "fd00:203::/64"], "untouched", "untouched"],
  ["loopback alone", ["localhost"], "untouched", "untouched"],
  ["the primary address and loopback", ["primary", "127.0.0.0/8", "::1/128"], served, "untouched"],
];

/** Node ports: the addresses that answer them. */
export const NODE_PORTS: readonly Scenario[] = [
  ...CHOICES.map(([what, nodePortAddresses, first, second]): Scenario => ({
    name: `node ports answer on what is chosen: ${what}`,
    rules: ["R-37", "R-38", "R-61"],
    subtleties: [13],
    settings: { nodePortAddresses },
    ...SECOND_ONLY,
    steps: [
      {
        say: "a NodePort service",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks(EVERY_CLIENT, NODE1, first, { port }),
          ...asks(EVERY_CLIENT, SECOND, second, { port }),
          ...asks("node1", LOOPBACK, "untouched", { port }),
        ],
      },
      {
        say: "without endpoints",
        put: slices("web", []),
        probes: [
          ...asks(EVERY_CLIENT, NODE1, first === served ? "refused" : first, { port }),
          ...asks(EVERY_CLIENT, SECOND, second === served ? "refused" : second, { port }),
        ],
      },
      {
        say: "under the Local policy with one elsewhere",
        put: [service("web", { number: 1, ways: ["nodePort"], spec: { externalTrafficPolicy: "Local" } }), ...slices("web", ["pod-2-1"])],
        probes: [
          ...asks("client1", NODE1, first === served ? "dropped" : first, { port }),
          ...asks("client1", SECOND, second === served ? "dropped" : second, { port }),
        ],
      },
    ],
  })),
  {
    name: "node ports answer on the node's primary address, for every kind of client",
    rules: ["R-37", "R-38", "R-28"],
    steps: [
      {
        say: "a NodePort service",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("pod-1-3 node1 client1 pod-2-3 node2", "web nodePort@node1", served),
          ...asks("node1", LOOPBACK, "untouched", { port }),
        ],
      },
      {
        say: "its node port becomes another one",
        put: [service("web", { number: 2, ways: ["nodePort"] })],
        probes: [...asks("client1", NODE1, "untouched", { port }), ...asks("client1", "web nodePort@node1", served)],
      },
      {
        say: "it has none any more",
        put: [service("web", { number: 2 })],
        probes: asks("client1", NODE1, "untouched", { port: nodePortOf(2) }),
      },
    ],
  },
  {
    name: "a node port of another node's address is left to that node",
    rules: ["R-37"],
    steps: [
      {
        say: "a NodePort service",
        put: [WEB, ...slices("web", ["pod-1-1"])],
        probes: asks("pod-1-3 node1 client1", NODE2, "untouched", { port }),
      },
    ],
  },
  {
    name: "node ports can be switched off for the world by choosing loopback",
    rules: ["R-38"],
    settings: { nodePortAddresses: ["localhost"] },
    steps: [
      {
        say: "a NodePort service",
        put: [service("web", { number: 1, ways: ["nodePort", "externalIP"] }), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("pod-1-3 client1", "web nodePort@node1", "untouched"),
          ...asks("client1", "web externalIP", "pod-1-1 saw node1"),
          ...asks("node1", LOOPBACK, "untouched", { port }),
        ],
      },
    ],
  },
  ...(["IPv4", "IPv6"] as const).map((family): Scenario => {
    const other = family === "IPv4" ? "IPv6" : "IPv4";
    return {
      name: `node ports answer everywhere over ${family} when all that is chosen is ${other}`,
      rules: ["R-37"],
      subtleties: [12],
      families: [family],
      settings: { nodePortAddresses: [other === "IPv4" ? "192.0.2.0/24" : "fd00:192::/64"] },
      steps: [
        {
          say: "a NodePort service",
          put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
          probes: asks(EVERY_CLIENT, "web nodePort@node1", served),
        },
      ],
    };
  }),
  {
    name: "node ports answer nowhere when the chosen range holds none of the node's addresses",
    rules: ["R-37"],
    settings: { nodePortAddresses: ["192.0.2.0/24", "fd00:192::/64"] },
    steps: [
      {
        say: "a NodePort service",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("pod-1-3 client1", "web nodePort@node1", "untouched"),
      },
      { say: "without endpoints", put: slices("web", []), probes: asks("pod-1-3 client1", "web nodePort@node1", "untouched") },
    ],
  },
  {
    name: "node ports answer on all addresses when all are chosen, but for loopback",
    rules: ["R-37", "R-38"],
    settings: { nodePortAddresses: ["all"] },
    steps: [
      {
        say: "a NodePort service",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [...asks(EVERY_CLIENT, "web nodePort@node1", served), ...asks("node1", LOOPBACK, "untouched", { port })],
      },
      {
        say: "without endpoints",
        put: slices("web", []),
        probes: [...asks(EVERY_CLIENT, "web nodePort@node1", "refused"), ...asks("node1", LOOPBACK, "untouched", { port })],
      },
    ],
  },
  {
    name: "a family in which the node has no primary address answers node ports everywhere",
    rules: ["R-37", "R-61"],
    subtleties: [12],
    families: ["IPv6"],
    fakeOnly: "the command ends when its node's addresses change",
    steps: [
      {
        say: "a node without an IPv6 address",
        put: [
          rawNode("node1", { zone: "zone-a", addresses: [NODE1.IPv4], podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] }),
          WEB,
          ...slices("web", ["pod-1-1", "pod-2-1"]),
        ],
        probes: asks(EVERY_CLIENT, NODE1, served, { port }),
      },
    ],
  },
];
