import type { DetectLocal, IPFamily } from "@turnout/core";
import type { Scenario } from "../runner/scenario.ts";
import { service, slices } from "../runner/short.ts";
import { asks, asksUnmasked, OUTSIDE_WAYS } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const LOCAL = service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Local" } });

/** How a way to tell pods treats each place: whom a server behind the cluster IP sees, and whether the Local external policy takes it for a pod. */
interface Detection {
  readonly mode: string;
  readonly detectLocal: DetectLocal;
  readonly families?: readonly IPFamily[];
  readonly rules: readonly string[];
  /** Places taken for pods; blanks between. */
  readonly pods: string;
  /** The other ones. */
  readonly others: string;
}

const DETECTIONS: readonly Detection[] = [
  {
    mode: "the cluster's pod range",
    detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/32"] },
    rules: ["R-24", "R-31"],
    pods: "pod-1-2 pod-1-3",
    others: "client1",
  },
  {
    mode: "the node's pod range",
    detectLocal: { mode: "NodeCIDR" },
    rules: ["R-24", "R-31"],
    pods: "pod-1-2 pod-1-3",
    others: "client1 pod-2-3",
  },
  {
    mode: "interface prefix",
    detectLocal: { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" },
    rules: ["R-24", "R-31"],
    pods: "pod-1-2 pod-1-3",
    others: "client1 pod-2-3",
  },
  {
    mode: "one interface",
    detectLocal: { mode: "BridgeInterface", bridgeInterface: "veth2" },
    rules: ["R-24", "R-31"],
    pods: "pod-1-2",
    others: "client1 pod-1-3 pod-2-3",
  },
];

/** Whoever is taken for a pod keeps its address and goes anywhere; whoever isn't stays on the node when the policy is Local. */
const detections: readonly Scenario[] = DETECTIONS.map(({ mode, detectLocal, rules, pods, others }) => ({
  name: `pods told by ${mode} keep their address behind a cluster IP, and others don't`,
  rules,
  settings: { detectLocal },
  steps: [
    {
      say: "an endpoint here",
      put: [LOCAL, ...slices("web", ["pod-1-1"])],
      probes: [
        ...asksUnmasked(pods, "web clusterIP", "pod-1-1"),
        ...asks(here(others), "web clusterIP", "pod-1-1 saw node1"),
        ...asks("node1 pod-1-1", "web clusterIP", "pod-1-1 saw node1"),
      ],
    },
    {
      say: "endpoints here and there, the Local external policy",
      put: slices("web", ["pod-1-1", "pod-2-1"]),
      probes: [
        ...asksUnmasked(pods, OUTSIDE_WAYS, "pod-1-1 pod-2-1"),
        ...asksUnmasked(others, "web nodePort@node1", "pod-1-1"),
        ...asks("node1", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1"),
      ],
    },
    {
      say: "an endpoint elsewhere only",
      put: slices("web", ["pod-2-1"]),
      probes: [
        ...asksUnmasked(pods, OUTSIDE_WAYS, "pod-2-1"),
        ...asks(here(others), OUTSIDE_WAYS, "dropped"),
        ...asks("node1", OUTSIDE_WAYS, "pod-2-1 saw node1"),
      ],
    },
  ],
}));

/** Source addresses: detect-local in all its modes, hairpin, the mark. */
export const SOURCE_ADDRESS: readonly Scenario[] = [
  ...detections,
  ...detectionsBlind(),
  {
    name: "of several pod ranges of a family the first one counts",
    rules: ["R-24"],
    fakeOnly: "the command takes one range a family",
    settings: { detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.1.0/24", "10.1.2.0/24", "fd00:1:1::/64", "fd00:1:2::/64"] } },
    steps: [
      {
        say: "the other node's pods are in the second range",
        put: [LOCAL, ...slices("web", ["pod-1-1"])],
        probes: [...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"), ...asks("pod-2-3", "web clusterIP", "pod-1-1 saw node1")],
      },
      { say: "an endpoint elsewhere", put: slices("web", ["pod-2-1"]), probes: asks("pod-2-3", OUTSIDE_WAYS, "dropped") },
    ],
  },
  {
    name: "pods elsewhere are told by the cluster's range too, and not by this node's",
    rules: ["R-24"],
    settings: { detectLocal: { mode: "NodeCIDR" } },
    steps: [
      {
        say: "an endpoint here",
        put: [LOCAL, ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("pod-2-3 node2", "web clusterIP", "pod-1-1 saw node1"),
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
        ],
      },
    ],
  },
  {
    name: "a pod that reaches itself sees the node, in every way and under both policies",
    rules: ["R-36"],
    steps: [
      {
        say: "the policies are Cluster",
        put: [service("web", { number: 1, ways: WAYS }), ...slices("web", ["pod-1-1"])],
        probes: asks("pod-1-1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 saw node1"),
      },
      {
        say: "the external policy is Local",
        put: [LOCAL],
        probes: asks("pod-1-1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 saw node1"),
      },
      {
        say: "another endpoint beside it",
        put: slices("web", ["pod-1-1", "pod-1-2"]),
        probes: [
          ...asks("pod-1-1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 saw node1, pod-1-2 saw pod-1-1"),
          ...asks("pod-1-2", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-2 saw node1, pod-1-1 saw pod-1-2"),
        ],
      },
      {
        say: "it stops serving",
        put: slices("web", ["pod-1-2"]),
        probes: asks("pod-1-1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-2 saw pod-1-1"),
      },
    ],
  },
  {
    name: "a pod that reaches itself sees the node, also if its endpoint names no node",
    rules: ["R-36"],
    steps: [
      {
        say: "a slice without nodeName",
        put: [service("web", { number: 1, ways: WAYS }), ...slices("web", [{ on: "pod-1-1", isNodeUnknown: true }])],
        probes: asks("pod-1-1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 saw node1"),
      },
    ],
  },
  {
    name: "a pod elsewhere that reaches itself by this node sees the node",
    rules: ["R-36", "R-31"],
    fakeOnly: "pods elsewhere ask their own node",
    steps: [
      {
        say: "the external policy is Local",
        put: [LOCAL, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("pod-2-1", OUTSIDE_WAYS, "pod-1-1 saw pod-2-1, pod-2-1 saw node1"),
      },
      {
        say: "it is the only endpoint",
        put: slices("web", ["pod-2-1"]),
        probes: asks("pod-2-1", OUTSIDE_WAYS, "pod-2-1 saw node1"),
      },
    ],
  },
  ...[14, 3, 31].map((masqueradeBit): Scenario => ({
    name: `marks of others count for nothing beside bit ${masqueradeBit}`,
    rules: ["R-69"],
    subtleties: [18],
    fakeOnly: "nobody marks packets there",
    settings: { masqueradeBit },
    steps: [
      {
        say: "a service with all ways, the Local external policy",
        put: [LOCAL, ...slices("web", ["pod-1-1", "pod-1-2"])],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 pod-1-2 saw pod-1-3", { isMarked: true }),
          ...asks("client1", "web clusterIP", "pod-1-1 pod-1-2 saw node1", { isMarked: true }),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 pod-1-2 saw client1", { isMarked: true }),
          ...asks("client1", { IPv4: "192.0.2.9", IPv6: "2001:db8::9" }, "untouched", { isMarked: true }),
        ],
      },
    ],
  })),
  {
    name: "another mark bit changes nothing that a packet can see",
    rules: ["R-24", "R-28"],
    subtleties: [18],
    settings: { masqueradeBit: 3 },
    steps: [
      {
        say: "a service with all ways",
        put: [service("web", { number: 1, ways: WAYS }), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
          ...asks("client1 node1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 pod-2-1 saw node1"),
        ],
      },
    ],
  },
  ...(["IPv4", "IPv6"] as const).map((family): Scenario => ({
    name: `an address of the host inside the pods' range is a pod's first, over ${family}`,
    rules: ["R-35", "R-31", "R-32"],
    families: [family],
    hostAddresses: { IPv4: ["10.1.1.254"], IPv6: ["fd00:1:1::fe"] },
    steps: [
      {
        say: "an endpoint elsewhere, the Local external policy",
        put: [LOCAL, ...slices("web", ["pod-2-1"])],
        probes: [
          ...asks("node1", ["web clusterIP", ...OUTSIDE_WAYS], `pod-2-1 saw ${family === "IPv4" ? "10.1.1.254" : "fd00:1:1::fe"}`, {
            as: { IPv4: "10.1.1.254", IPv6: "fd00:1:1::fe" },
          }),
          ...asks("node1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-2-1 saw node1"),
        ],
      },
    ],
  })),
  {
    name: "another address of the host is the host's under the Local external policy",
    rules: ["R-32", "R-28"],
    hostAddresses: { IPv4: ["192.0.2.1"], IPv6: ["fd00:192::1"] },
    steps: [
      {
        say: "the Cluster external policy, endpoints here and there",
        put: [service("web", { number: 1, ways: WAYS }), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("node1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 pod-2-1 saw node1", {
          as: { IPv4: "192.0.2.1", IPv6: "fd00:192::1" },
        }),
      },
      {
        say: "the Local external policy",
        put: [LOCAL],
        probes: asks("node1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 pod-2-1 saw node1", {
          as: { IPv4: "192.0.2.1", IPv6: "fd00:192::1" },
        }),
      },
      {
        say: "an endpoint elsewhere",
        put: [LOCAL, ...slices("web", ["pod-2-1"])],
        probes: asks("node1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-2-1 saw node1", { as: { IPv4: "192.0.2.1", IPv6: "fd00:192::1" } }),
      },
    ],
  },
];

/** Modes without data, in one family or both. */
function detectionsBlind(): readonly Scenario[] {
  const blind: readonly (readonly [string, readonly string[], readonly IPFamily[] | undefined])[] = [
    ["at all", [], undefined],
    ["over IPv6, where only the IPv4 range is known", ["10.1.0.0/16"], ["IPv6"]],
    ["over IPv4, where only the IPv6 range is known", ["fd00:1::/32"], ["IPv4"]],
  ];
  return blind.map(([where, clusterCIDRs, families]) => ({
    name: `where pods can't be told ${where} nobody's address is rewritten and pods count as outside`,
    rules: ["R-26", "R-34", "R-36", "R-32"],
    settings: { detectLocal: { mode: "ClusterCIDR", clusterCIDRs } },
    ...(families === undefined ? {} : { families }),
    steps: [
      {
        say: "an endpoint here",
        put: [LOCAL, ...slices("web", ["pod-1-1"])],
        probes: [
          ...asksUnmasked("pod-1-3 node1 client1", "web clusterIP", "pod-1-1"),
          ...asksUnmasked("pod-1-3 node1 client1", OUTSIDE_WAYS, "pod-1-1"),
          ...asks("pod-1-1", ["web clusterIP", ...OUTSIDE_WAYS], "pod-1-1 saw node1"),
        ],
      },
      {
        say: "endpoints here and there",
        put: slices("web", ["pod-1-1", "pod-2-1"]),
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-1 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1"),
        ],
      },
      {
        say: "an endpoint elsewhere only",
        put: slices("web", ["pod-2-1"]),
        probes: [
          ...asks("pod-1-3 client1", OUTSIDE_WAYS, "dropped"),
          ...asks("node1", OUTSIDE_WAYS, "pod-2-1 saw node1"),
          ...asks("pod-1-3", "web clusterIP", "pod-2-1 saw pod-1-3"),
        ],
      },
    ],
  }));
}

/** Those of these places whose packets come to node1 first in the laboratory too. */
function here(places: string): string {
  return places
    .split(" ")
    .filter((place) => !place.startsWith("pod-2"))
    .join(" ");
}
