import { rawServiceCIDR } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../../runner/scenario.ts";
import { addressesOf, refs, service, servicePorts, slicePorts, slices } from "../../runner/short.ts";
import { FORBIDDEN, GOOD, NONSENSE } from "./nonsense.ts";
import { EVERY_CLIENT, asks, asksUnmasked, EVERY_WAY, NODE1 } from "../probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const WEB = service("web", { number: 1, ways: WAYS });
const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const;
const INJECTIONS = [
  'web"; flush ruleset; add table ip x "',
  "web\nflush ruleset",
  "../../etc/passwd",
  "$(reboot)",
  "web}",
  "\u001b[2J",
  "",
  "-web",
  "é",
];

/** Any Service again, with its parts in the spec replaced by nonsense of every kind. */
function wrecks(): readonly RawObject[] {
  const fields = [
    "ports",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "externalIPs",
    "type",
    "sessionAffinity",
    "internalTrafficPolicy",
    "sessionAffinityConfig",
  ];
  const values: readonly unknown[] = ["web; flush ruleset", 7, -1, true, null, [], {}, [null], [{}], ["", 0, {}], [["10.96.0.1"]]];
  return fields.flatMap((field, row) =>
    values.map((value, column) => service(`wreck-${row}-${column}`, { number: 50 + row, spec: { [field]: value } })),
  );
}

/** Input nobody should trust: bad objects and bad parts beside good ones. */
export const HOSTILE_INPUT: readonly Scenario[] = [
  {
    name: "bad parts of a Service are skipped, and the good ones work",
    rules: ["R-55", "R-05", "R-04"],
    steps: [
      {
        say: "bad external addresses beside good ones",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { externalIPs: [...NONSENSE, ...Object.values(addressesOf(1, "externalIP"))] } }),
          ...slices("web", ["pod-1-1"]),
        ],
        probes: GOOD,
      },
      {
        say: "bad load-balancer addresses beside good ones",
        put: [
          {
            ...WEB,
            status: {
              loadBalancer: {
                ingress: [
                  ...NONSENSE.map((ip) => ({ ip })),
                  ...NONSENSE.filter((entry) => typeof entry !== "object"),
                  { ip: addressesOf(2, "loadBalancerIP").IPv4, ipMode: "Nonsense" },
                  { ip: addressesOf(2, "loadBalancerIP").IPv6, ipMode: "Nonsense" },
                  ...Object.values(addressesOf(1, "loadBalancerIP")).map((ip) => ({ ip })),
                ],
              },
            },
          },
        ],
        probes: [
          ...GOOD.filter(({ to }) => to !== "web loadBalancerIP"),
          ...asks("client1", addressesOf(1, "loadBalancerIP"), "pod-1-1 saw node1", { port: 80 }),
          ...asks("client1", addressesOf(2, "loadBalancerIP"), "untouched", { port: 80 }),
        ],
      },
      {
        say: "bad ports beside good ones",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: {
              ports: [
                ...PROTOCOLS.flatMap((protocol) => [
                  { name: "zero", protocol, port: 0 },
                  { name: "much", protocol, port: 70_000 },
                  { name: "text", protocol, port: "80" },
                  { name: "part", protocol, port: 80.5 },
                  { name: 'x"; flush ruleset', protocol, port: 82 },
                ]),
                { name: "icmp", protocol: "ICMP", port: 80 },
                null,
                "80",
                ...servicePorts({ name: "a", port: 80, nodePort: 30_001 }),
                ...PROTOCOLS.map((protocol) => ({ name: "late", protocol, port: 80, nodePort: 30_003 })),
                ...PROTOCOLS.map((protocol) => ({ name: `a-${protocol.toLowerCase()}`, protocol, port: 83 })),
                ...PROTOCOLS.map((protocol) => ({ name: "node", protocol, port: 84, nodePort: 70_000 })),
              ],
            },
          }),
          ...slices("web", ["pod-1-1"], "1", {
            ports: [...slicePorts(["a", "late"]), ...PROTOCOLS.map((protocol) => ({ name: "node", protocol, port: 8080 }))],
          }),
        ],
        probes: [
          ...asks("client1", ["web clusterIP", "web externalIP", "web loadBalancerIP"], "pod-1-1 saw node1", { port: 80 }),
          ...asks("client1", NODE1, "pod-1-1 saw node1", { port: 30_001 }),
          ...asks("client1", NODE1, "untouched", { port: 30_003 }),
          ...asks("client1", "web clusterIP", "refused", { port: 82 }),
          ...asks("client1", "web clusterIP", "refused", { port: 83 }),
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { port: 84 }),
        ],
      },
      {
        say: "bad policies and affinity read as the defaults",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: { internalTrafficPolicy: "local", externalTrafficPolicy: "Remote", sessionAffinity: "Cookie" },
          }),
          ...slices("web", ["pod-2-1"]),
        ],
        probes: asks("client1", EVERY_WAY, "pod-2-1 saw node1"),
      },
    ],
  },
  {
    name: "addresses that can't be a service's are refused as such",
    rules: ["R-52", "R-55"],
    steps: [
      {
        say: "as external and load-balancer IPs",
        put: [
          {
            ...service("web", {
              number: 1,
              ways: ["nodePort"],
              spec: { externalIPs: [...FORBIDDEN, ...Object.values(addressesOf(1, "externalIP"))] },
            }),
            status: { loadBalancer: { ingress: FORBIDDEN.map((ip) => ({ ip })) } },
          },
          ...slices("web", ["pod-1-1"]),
        ],
        probes: [
          ...asks("node1", { IPv4: "127.0.0.1", IPv6: "::1" }, "untouched", { port: 80 }),
          ...asks("client1", addressesOf(1, "externalIP"), "pod-1-1 saw node1", { port: 80 }),
          ...asks("client1", ["web clusterIP", "web nodePort@node1"], "pod-1-1 saw node1"),
        ],
      },
      {
        say: "as a cluster IP",
        put: [service("web", { number: 1, spec: { clusterIP: "127.0.0.1", clusterIPs: ["127.0.0.1", "::1"] } })],
        probes: [
          ...asks("node1", { IPv4: "127.0.0.1", IPv6: "::1" }, "untouched", { port: 80 }),
          ...asks(EVERY_CLIENT, addressesOf(1, "clusterIP"), "dropped", { port: 80 }),
        ],
      },
    ],
  },
  {
    name: "packets that are for pods nobody reaches can't be had through an address of metadata servers or of the host",
    rules: ["R-52", "R-55"],
    fakeOnly: "packets to link-local addresses don't leave their sender",
    steps: [
      {
        say: "forbidden addresses as external ones",
        put: [service("web", { number: 1, spec: { externalIPs: FORBIDDEN } }), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks(EVERY_CLIENT, { IPv4: "169.254.169.254", IPv6: "fe80::1" }, "untouched", { port: 80 }),
          ...asks(EVERY_CLIENT, { IPv4: "224.0.0.1", IPv6: "ff02::1" }, "untouched", { port: 80 }),
        ],
      },
    ],
  },
  {
    name: "wrecked Services harm nobody",
    rules: ["R-55"],
    steps: [
      { say: "a good one among wrecks", put: [...wrecks(), WEB, ...slices("web", ["pod-1-1"])], probes: GOOD },
      { say: "its endpoint changes", put: slices("web", ["pod-2-1"]), probes: asks("client1", EVERY_WAY, "pod-2-1 saw node1") },
      {
        say: "it is wrecked itself",
        put: [service("web", { number: 1, ways: WAYS, spec: { type: "Portal" } })],
        probes: asks(EVERY_CLIENT, addressesOf(1, "clusterIP"), "dropped", { port: 80 }),
      },
      { say: "and mended", put: [WEB, ...slices("web", ["pod-1-1"])], probes: GOOD },
    ],
  },
  {
    name: "names that mean something to a shell, a rule set or a terminal reach none of them",
    rules: ["R-55"],
    fakeOnly: "an API server doesn't take such names",
    steps: [
      {
        say: "services and slices with such names",
        put: [
          ...INJECTIONS.flatMap((name, index) => [
            service(name, { number: 20 + index, ways: WAYS }),
            ...slices(name, ["pod-1-2"]),
            { ...service("named", { number: 40 + index }), metadata: { namespace: name, name: `named-${index}` } },
          ]),
          { apiVersion: "v1", kind: "Service" },
          { apiVersion: "v1", kind: "Service", metadata: "web", spec: 7 },
          { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: { name: null } },
          { apiVersion: "v1", kind: "Node", metadata: { name: ["node1"] } },
          WEB,
          ...slices("web", ["pod-1-1"]),
        ],
        probes: GOOD,
      },
    ],
  },
  {
    name: "names that mean something to JavaScript are names like others",
    rules: ["R-04", "R-12"],
    steps: [
      {
        say: "services called constructor and tostring",
        put: [
          service("constructor", {
            number: 1,
            spec: { ports: PROTOCOLS.map((protocol) => ({ name: "constructor", protocol, port: 80 })) },
          }),
          ...slices("constructor", ["pod-1-1"], "1", {
            ports: PROTOCOLS.map((protocol) => ({ name: "constructor", protocol, port: 8080 })),
          }),
          service("valueof", { number: 2 }),
          ...slices("valueof", ["pod-1-2"], "prototype"),
        ],
        probes: [
          ...asksUnmasked("pod-1-3", "constructor clusterIP", "pod-1-1"),
          ...asksUnmasked("pod-1-3", "valueof clusterIP", "pod-1-2"),
        ],
      },
      { say: "one goes", remove: refs("constructor"), probes: asksUnmasked("pod-1-3", "valueof clusterIP", "pod-1-2") },
    ],
  },
  {
    name: "a malformed service range is skipped, and the good ones hold",
    rules: ["R-55", "R-62"],
    steps: [
      {
        say: "ranges of nonsense",
        put: [
          WEB,
          ...slices("web", ["pod-1-1"]),
          rawServiceCIDR("nonsense", [...NONSENSE.filter((entry) => entry !== "10.96.0.1/32"), "0.0.0.0/33", "10.0.0.0/-1"]),
        ],
        probes: [...GOOD, ...asks(EVERY_CLIENT, addressesOf(9, "clusterIP"), "dropped", { port: 80 })],
      },
      { say: "it goes", remove: [{ kind: "ServiceCIDR", namespace: "", name: "nonsense" }], probes: GOOD },
    ],
  },
];
