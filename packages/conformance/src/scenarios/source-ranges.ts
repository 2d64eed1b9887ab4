import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, refs, service, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, asksUnmasked } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const OTHER_WAYS = ["web clusterIP", "web nodePort@node1", "web externalIP"];
const CLIENT1 = ["203.0.113.1/32", "fd00:203::1/128"];
const CLIENT2 = ["203.0.113.2/32", "fd00:203::2/128"];
const NODE1_RANGE = ["172.18.0.1/32", "fd00:18::1/128"];

/** A Service with all ways and these source ranges. */
function ranged(loadBalancerSourceRanges: unknown, spec: RawObject = {}): RawObject {
  return service("web", { number: 1, ways: WAYS, spec: { loadBalancerSourceRanges, ...spec } });
}

/** Another one. */
function rangedToo(loadBalancerSourceRanges: readonly string[]): RawObject {
  return service("api", { number: 2, ways: WAYS, spec: { loadBalancerSourceRanges } });
}

/** Source ranges of load-balancer IPs. */
export const SOURCE_RANGES: readonly Scenario[] = [
  {
    name: "source ranges hold for load-balancer IPs and for nothing else",
    rules: ["R-39", "R-07", "R-56"],
    subtleties: [10],
    steps: [
      {
        say: "one client may",
        put: [ranged(CLIENT1), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("client1", "web loadBalancerIP", "pod-1-1 pod-2-1 saw node1"),
          ...asks("client2 pod-1-3 node1", "web loadBalancerIP", "dropped"),
          ...asks("client2", OTHER_WAYS, "pod-1-1 pod-2-1 saw node1"),
        ],
      },
      {
        say: "the range is widened",
        put: [ranged(["203.0.113.0/24", "fd00:203::/64"])],
        probes: [
          ...asks("client1 client2", "web loadBalancerIP", "pod-1-1 pod-2-1 saw node1"),
          ...asks("pod-1-3 node1", "web loadBalancerIP", "dropped"),
        ],
      },
      {
        say: "pods may, one client may not",
        put: [ranged(["10.1.0.0/16", "203.0.113.1/32", "fd00:1::/32", "fd00:203::1/128"])],
        probes: [
          ...asks("client1 pod-1-3", "web loadBalancerIP", "pod-1-1 pod-2-1 saw node1"),
          ...asks("client2 node1", "web loadBalancerIP", "dropped"),
        ],
      },
      {
        say: "everybody may",
        put: [ranged(["0.0.0.0/0", "::/0"])],
        probes: asks("client2 pod-1-3 node1", "web loadBalancerIP", "pod-1-1 pod-2-1 saw node1"),
      },
      {
        say: "no ranges",
        put: [service("web", { number: 1, ways: WAYS })],
        probes: asks("client2 pod-1-3 node1", "web loadBalancerIP", "pod-1-1 pod-2-1 saw node1"),
      },
    ],
  },
  {
    name: "each of many source ranges counts",
    rules: ["R-39"],
    steps: [
      {
        say: "five ranges of each family",
        put: [
          ranged(["192.0.2.0/24", "2001:db8::/64", "10.1.1.3/32", "fd00:1:1::3/128", ...NODE1_RANGE, ...CLIENT1, ...CLIENT2]),
          ...slices("web", ["pod-1-1", "pod-2-1"]),
        ],
        probes: [
          ...asks("pod-1-3 node1 client1 client2", "web loadBalancerIP", "pod-1-1 pod-2-1 saw node1"),
          ...asks("pod-1-2", "web loadBalancerIP", "dropped"),
        ],
      },
      {
        say: "the first of them goes",
        put: [ranged([...CLIENT2, ...CLIENT1, ...NODE1_RANGE, "10.1.1.3/32", "fd00:1:1::3/128"])],
        probes: [
          ...asks("pod-1-3 node1 client1 client2", "web loadBalancerIP", "pod-1-1 pod-2-1 saw node1"),
          ...asks("pod-1-2", "web loadBalancerIP", "dropped"),
        ],
      },
    ],
  },
  {
    name: "source ranges are asked before anything else, also without endpoints",
    rules: ["R-39", "R-29", "R-33"],
    subtleties: [10],
    steps: [
      {
        say: "without endpoints",
        put: [ranged(CLIENT1), ...slices("web", [])],
        probes: [
          ...asks("client1", "web loadBalancerIP", "refused"),
          ...asks("client2 pod-1-3 node1", "web loadBalancerIP", "dropped"),
          ...asks("client2", OTHER_WAYS, "refused"),
        ],
      },
      {
        say: "the Local policy, endpoints here",
        put: [ranged(CLIENT1, { externalTrafficPolicy: "Local" }), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("client1", "web loadBalancerIP", "pod-1-1 saw client1"),
          ...asks("client2 pod-1-3 node1", "web loadBalancerIP", "dropped"),
          ...asks("client2", ["web nodePort@node1", "web externalIP"], "pod-1-1 saw client2"),
        ],
      },
      {
        say: "endpoints elsewhere",
        put: slices("web", ["pod-2-1"]),
        probes: [
          ...asks("client1 client2 pod-1-3 node1", "web loadBalancerIP", "dropped"),
          ...asks("pod-1-3", "web externalIP", "pod-2-1 saw pod-1-3"),
        ],
      },
      {
        say: "pods may",
        put: [ranged(["10.1.0.0/16", "fd00:1::/32"], { externalTrafficPolicy: "Local" })],
        probes: [
          ...asks("pod-1-3", "web loadBalancerIP", "pod-2-1 saw pod-1-3"),
          ...asks("client1 node1", "web loadBalancerIP", "dropped"),
        ],
      },
    ],
  },
  {
    name: "source ranges of two Services that begin or end alike stay apart",
    rules: ["R-39"],
    subtleties: [10],
    steps: [
      {
        say: "they begin alike",
        put: [ranged(CLIENT1), rangedToo([...CLIENT1, ...CLIENT2]), ...slices("web", ["pod-1-1"]), ...slices("api", ["pod-1-1"])],
        probes: [
          ...asks("client1", ["web loadBalancerIP", "api loadBalancerIP"], "pod-1-1 saw node1"),
          ...asks("client2", "web loadBalancerIP", "dropped"),
          ...asks("client2", "api loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("pod-1-3 node1", ["web loadBalancerIP", "api loadBalancerIP"], "dropped"),
        ],
      },
      {
        say: "they change places",
        put: [ranged([...CLIENT1, ...CLIENT2]), rangedToo(CLIENT1)],
        probes: [
          ...asks("client1", ["web loadBalancerIP", "api loadBalancerIP"], "pod-1-1 saw node1"),
          ...asks("client2", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("client2", "api loadBalancerIP", "dropped"),
        ],
      },
      {
        say: "they end alike",
        put: [rangedToo(CLIENT2)],
        probes: [
          ...asks("client1 client2", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("client1", "api loadBalancerIP", "dropped"),
          ...asks("client2", "api loadBalancerIP", "pod-1-1 saw node1"),
        ],
      },
      {
        say: "one of them goes",
        remove: refs("api"),
        probes: [
          ...asks("client1 client2", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("pod-1-3 node1", "web loadBalancerIP", "dropped"),
        ],
      },
    ],
  },
  {
    name: "source ranges may be padded, have host bits and overlap",
    rules: ["R-07"],
    subtleties: [10],
    steps: [
      {
        say: "untidy ranges",
        put: [
          ranged([" 203.0.113.1/32 ", "010.1.1.7/16", "10.1.1.0/24", "FD00:203::1/128 ", "\tfd00:1:1::7/48"]),
          ...slices("web", ["pod-2-1"]),
        ],
        probes: [
          ...asks("client1 pod-1-3", "web loadBalancerIP", "pod-2-1 saw node1"),
          ...asks("client2 node1", "web loadBalancerIP", "dropped"),
        ],
      },
    ],
  },
  ...(["IPv4", "IPv6"] as const).map((family): Scenario => {
    const others = CLIENT1.filter((range) => range.includes(":") === (family === "IPv4"));
    const allOthers = family === "IPv4" ? "::/0" : "0.0.0.0/0";
    const own = CLIENT1.filter((range) => !others.includes(range));
    const open = asks("client1 client2 pod-1-3 node1", "web loadBalancerIP", "pod-1-1 saw node1");
    const closed = asks("client1 client2", "web loadBalancerIP", "untouched");
    const restricted = [
      ...asks("client1", "web loadBalancerIP", "pod-1-1 saw node1"),
      ...asks("client2 pod-1-3", "web loadBalancerIP", "dropped"),
    ];
    return {
      name: `ranges of the other family leave ${family} open, unless an entry can't be read`,
      rules: ["R-07", "R-55", "R-72"],
      families: [family],
      steps: [
        { say: "ranges of the other family", put: [ranged(others), ...slices("web", ["pod-1-1"])], probes: open },
        { say: "one that can't be read is added: it may be this family's", put: [ranged([...others, "203.0.113.1/322"])], probes: closed },
        {
          say: "one for all clients of the other family, and one that can't be read",
          put: [ranged([allOthers, "fd00:203::1/1280"])],
          probes: closed,
        },
        { say: "a range of this family, one that can't be read, and none of the other", put: [ranged([...own, "x"])], probes: restricted },
        { say: "one for all clients of the other family", put: [ranged([allOthers])], probes: open },
        { say: "the same, next to a range of this family", put: [ranged([...own, allOthers])], probes: restricted },
      ],
    };
  }),
  {
    name: "of several source ranges a bad one is skipped, and when all are bad nobody is let in",
    rules: ["R-07", "R-55"],
    steps: [
      {
        say: "one bad, one good of each family",
        put: [ranged(["anybody", ...CLIENT1, "10.1.0.0/99"]), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("client1", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("client2", "web loadBalancerIP", "dropped"),
          ...asks("client2", OTHER_WAYS, "pod-1-1 saw node1"),
        ],
      },
      {
        say: "all bad",
        put: [ranged(["anybody"])],
        probes: [...asks("client1 client2", "web loadBalancerIP", "untouched"), ...asks("client1", OTHER_WAYS, "pod-1-1 saw node1")],
      },
      {
        say: "not a list",
        put: [ranged("203.0.113.1/32")],
        probes: [...asks("client1", "web loadBalancerIP", "untouched"), ...asks("client1", OTHER_WAYS, "pod-1-1 saw node1")],
      },
      {
        say: "all bad, and the load-balancer IP is called an external one too",
        put: [
          ranged(["anybody"], {
            externalIPs: (["externalIP", "loadBalancerIP"] as const).flatMap((way) => Object.values(addressesOf(1, way))),
          }),
        ],
        probes: [
          ...asks("client1 client2 pod-1-3", "web loadBalancerIP", "untouched"),
          ...asks("client1", "web externalIP", "pod-1-1 saw node1"),
        ],
      },
      { say: "good ones", put: [ranged(CLIENT1)], probes: asks("client1", "web loadBalancerIP", "pod-1-1 saw node1") },
    ],
  },
  {
    name: "a load-balancer IP that is an external IP as well stays restricted",
    rules: ["R-39"],
    steps: [
      {
        say: "named twice",
        put: [ranged(CLIENT1, { externalIPs: Object.values(addressesOf(1, "loadBalancerIP")) }), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("client1", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("client2 pod-1-3", "web loadBalancerIP", "dropped"),
        ],
      },
      {
        say: "the ranges go",
        put: [ranged([], { externalIPs: Object.values(addressesOf(1, "loadBalancerIP")) })],
        probes: asks("client2", "web loadBalancerIP", "pod-1-1 saw node1"),
      },
    ],
  },
  {
    name: "a host that has bound a load-balancer IP may use it as its source when the ranges hold the node",
    rules: ["R-40"],
    subtleties: [10],
    hostAddresses: {
      IPv4: ["192.0.2.1", addressesOf(1, "loadBalancerIP").IPv4],
      IPv6: ["fd00:192::1", addressesOf(1, "loadBalancerIP").IPv6],
    },
    steps: [
      {
        say: "the node is in the ranges",
        put: [ranged(NODE1_RANGE), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("node1", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("node1", "web loadBalancerIP", "pod-1-1 saw node1", { as: "web loadBalancerIP" }),
          ...asks("node1", "web loadBalancerIP", "dropped", { as: { IPv4: "192.0.2.1", IPv6: "fd00:192::1" } }),
          ...asks("node1", "web loadBalancerIP", "dropped", { as: "web externalIP" }),
          ...asks("client1", "web loadBalancerIP", "dropped"),
        ],
      },
      {
        say: "it is not",
        put: [ranged(CLIENT1)],
        probes: [
          ...asks("node1", "web loadBalancerIP", "dropped"),
          ...asks("node1", "web loadBalancerIP", "dropped", { as: "web loadBalancerIP" }),
          ...asks("client1", "web loadBalancerIP", "pod-1-1 saw node1"),
        ],
      },
    ],
  },
  {
    name: "nodes get through a load-balancer IP when their range is named",
    rules: ["R-40", "R-39"],
    steps: [
      {
        say: "the node's address alone",
        put: [ranged(NODE1_RANGE), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("node1", "web loadBalancerIP", "pod-1-1 saw node1"),
          ...asks("client1 pod-1-3", "web loadBalancerIP", "dropped"),
          ...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-1"),
        ],
      },
      {
        say: "without endpoints",
        put: slices("web", []),
        probes: [...asks("node1", "web loadBalancerIP", "refused"), ...asks(EVERY_CLIENT, "web externalIP", "refused")],
      },
    ],
  },
];
