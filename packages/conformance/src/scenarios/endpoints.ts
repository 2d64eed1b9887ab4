import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { refs, service, servicePorts, slicePorts, sliceRefs, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, asksUnmasked, EVERY_WAY } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const WEB = service("web", { number: 1, ways: WAYS });
const PODS = ["pod-1-1", "pod-1-2", "pod-1-3", "pod-2-1", "pod-2-2", "pod-2-3"];
const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const;

/** How many pods serve at each step: up, down, past powers of two, from nothing and back. */
const COUNTS = [1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0, 6, 0, 2, 4, 1];
/** Past the number of pods: each serves on two to four ports. */
const MANY = [7, 8, 9, 12, 16, 17, 24, 17, 9, 8, 1, 0, 9];

function manySlices(count: number): readonly RawObject[] {
  return [0, 1, 2, 3].flatMap((index) => {
    const pods = PODS.slice(0, Math.max(0, Math.min(6, count - index * 6)));
    return slices("web", pods, String(index), { ports: slicePorts(["a"], 8080 + index) });
  });
}

function manyServers(count: number): string {
  return Array.from({ length: count }, (_, index) => {
    const pod = PODS[index % 6] ?? "";
    return index < 6 ? pod : `${pod}:${8080 + Math.floor(index / 6)}`;
  }).join(" ");
}

/** Reading EndpointSlices, and any number of endpoints. */
export const ENDPOINTS: readonly Scenario[] = [
  {
    name: "every one of any number of endpoints is used",
    rules: ["R-22", "R-28", "R-23"],
    steps: [
      { say: "a service", put: [WEB], probes: asks("client1", EVERY_WAY, "refused") },
      ...COUNTS.map((count) => ({
        say: `${count} endpoints`,
        put: slices("web", PODS.slice(0, count)),
        probes: asks(
          "client1",
          ["web clusterIP", "web nodePort@node1"],
          count === 0 ? "refused" : `${PODS.slice(0, count).join(" ")} saw node1`,
        ),
      })),
    ],
  },
  {
    name: "every one of many endpoints is used",
    rules: ["R-22", "R-28", "R-12"],
    steps: [
      {
        say: "a service",
        put: [service("web", { number: 1, ways: WAYS, spec: { ports: servicePorts({ name: "a", port: 80, nodePort: 30_001 }) } })],
      },
      ...MANY.map((count) => ({
        say: `${count} endpoints`,
        put: manySlices(count),
        probes: asks("client1", ["web clusterIP", "web nodePort@node1"], count === 0 ? "refused" : `${manyServers(count)} saw node1`),
      })),
    ],
  },
  {
    name: "the slices of a Service count together",
    rules: ["R-11", "R-15"],
    steps: [
      {
        say: "two slices, one endpoint in both",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-1-2"]), ...slices("web", ["pod-1-2", "pod-2-1"], "2")],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 pod-1-2 pod-2-1 saw node1"),
          ...asks("pod-1-2", "web clusterIP", "pod-1-2 saw node1, pod-1-1 pod-2-1 saw pod-1-2"),
        ],
      },
      {
        say: "the first one goes",
        remove: sliceRefs("web"),
        probes: asks("client1", "web clusterIP", "pod-1-2 pod-2-1 saw node1"),
      },
      {
        say: "the first one is back, empty",
        put: slices("web", []),
        probes: asks("client1", "web clusterIP", "pod-1-2 pod-2-1 saw node1"),
      },
      { say: "both are gone", remove: [...sliceRefs("web"), ...sliceRefs("web", "2")], probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
    ],
  },
  {
    name: "slices may be there before their Service",
    rules: ["R-11"],
    steps: [
      { say: "slices alone", put: slices("web", ["pod-1-1"]) },
      { say: "the service", put: [WEB], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      { say: "the service goes, its slices stay", remove: refs("web").slice(0, 1) },
      { say: "it is back", put: [WEB], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
    ],
  },
  {
    name: "slices of names and of other Services contribute nothing",
    rules: ["R-11"],
    steps: [
      {
        say: "a slice of host names, and another Service's",
        put: [
          WEB,
          ...slices("web", ["pod-1-1"]),
          ...slices("web", ["pod-1-2"], "names", { addressType: "FQDN", endpoints: [{ addresses: ["example.org"] }] }),
          ...slices("other", ["pod-2-1"]),
        ],
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
      {
        say: "the other Service's slice becomes its own",
        put: slices("other", ["pod-2-1"]).map((slice) => ({
          ...slice,
          metadata: { ...(slice["metadata"] as RawObject), labels: { "kubernetes.io/service-name": "web" } },
        })),
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1"),
      },
      {
        say: "and goes back",
        put: slices("other", ["pod-2-1"]),
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
    ],
  },
  {
    name: "a slice port without a name or number contributes nothing",
    rules: ["R-13"],
    subtleties: [2],
    steps: [
      {
        say: "no ports",
        put: [WEB, ...slices("web", ["pod-1-1"], "1", { ports: [] })],
        probes: asks(EVERY_CLIENT, EVERY_WAY, "refused"),
      },
      { say: "null for ports", put: slices("web", ["pod-1-1"], "1", { ports: null }), probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
      {
        say: "ports without numbers, and without names",
        put: slices("web", ["pod-1-1"], "1", {
          ports: PROTOCOLS.flatMap((protocol) => [
            { name: protocol.toLowerCase(), protocol },
            { name: protocol.toLowerCase(), protocol, port: null },
            { protocol, port: 8080 },
            { name: null, protocol, port: 8080 },
          ]),
        }),
        probes: asks(EVERY_CLIENT, EVERY_WAY, "refused"),
      },
      { say: "a good slice beside it", put: slices("web", ["pod-2-1"], "2"), probes: asks("client1", EVERY_WAY, "pod-2-1 saw node1") },
    ],
  },
  {
    name: "ports are matched by name, whatever their numbers",
    rules: ["R-12"],
    subtleties: [1],
    steps: [
      {
        say: "the names stand crosswise to the numbers",
        put: [
          service("web", { number: 1, spec: { ports: servicePorts({ name: "a", port: 8080 }, { name: "b", port: 8081 }) } }),
          ...slices("web", ["pod-1-1"], "1", { ports: [...slicePorts(["a"], 8081), ...slicePorts(["b"], 8080)] }),
        ],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1:8081 saw node1", { port: 8080 }),
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { port: 8081 }),
        ],
      },
      {
        say: "a pod that serves a name on another number",
        put: slices("web", ["pod-1-2"], "2", { ports: slicePorts(["a"], 8082) }),
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1:8081 pod-1-2:8082 saw node1", { port: 8080 }),
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { port: 8081 }),
        ],
      },
      {
        say: "one pod on two numbers for one name",
        put: slices("web", ["pod-1-2"], "3", { ports: slicePorts(["a"], 8083) }),
        probes: asks("client1", "web clusterIP", "pod-1-1:8081 pod-1-2:8082 pod-1-2:8083 saw node1", { port: 8080 }),
      },
      {
        say: "a name nobody serves",
        put: slices("web", ["pod-1-1"], "1", { ports: slicePorts(["c"]) }),
        probes: asks("client1", "web clusterIP", "refused", { port: 8081 }),
      },
    ],
  },
  {
    name: "only the first address of an endpoint counts, and conditions may be missing",
    rules: ["R-14"],
    subtleties: [2],
    steps: [
      {
        say: "two addresses, no conditions, null for one",
        put: [
          WEB,
          ...slices("web", ["pod-1-1", "pod-2-1"]).map((slice) => ({
            ...slice,
            endpoints: (slice["endpoints"] as readonly RawObject[]).map((endpoint, index) => ({
              addresses: [...(endpoint["addresses"] as readonly string[]), slice["addressType"] === "IPv4" ? "10.1.1.2" : "fd00:1:1::2"],
              ...(index === 0 ? {} : { conditions: { ready: null, serving: null, terminating: null } }),
            })),
          })),
        ],
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1"),
      },
      {
        say: "an endpoint without addresses",
        put: slices("web", []).map((slice) => ({ ...slice, endpoints: [{ addresses: [], conditions: { ready: true } }] })),
        probes: asks("client1", EVERY_WAY, "refused"),
      },
    ],
  },
  ...(["1", "2"] as const).map((suffix): Scenario => ({
    name: `of two entries for one endpoint the one that doesn't terminate counts, in slice ${suffix} of 2`,
    rules: ["R-15"],
    subtleties: [15],
    steps: [
      {
        say: "an address is used again while its last owner terminates",
        put: [
          WEB,
          ...slices("web", ["pod-1-1"], suffix),
          ...slices(
            "web",
            [
              { on: "pod-1-1", ready: false, serving: true, terminating: true },
              { on: "pod-2-1", ready: false, serving: true, terminating: true },
            ],
            suffix === "1" ? "2" : "1",
          ),
        ],
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
      {
        say: "both terminate",
        put: slices("web", [{ on: "pod-1-1", ready: false, serving: true, terminating: true }], suffix),
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1"),
      },
    ],
  })),
  ...(["1", "2"] as const).map((suffix): Scenario => ({
    name: `of two entries for one endpoint the ready one counts, then the one here, in slice ${suffix} of 2`,
    rules: ["R-15", "R-22"],
    subtleties: [15],
    steps: [
      {
        say: "a virtual machine moved: its slice of before isn't ready",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-1-1"], suffix),
          ...slices("web", [{ on: "pod-1-1", nodeName: "node2", ready: false, serving: false }], suffix === "1" ? "2" : "1"),
        ],
        probes: asks("pod-1-2", "web clusterIP", "pod-1-1 saw pod-1-2"),
      },
      {
        say: "both are ready",
        put: slices("web", [{ on: "pod-1-1", nodeName: "node2" }], suffix === "1" ? "2" : "1"),
        probes: asks("pod-1-2", "web clusterIP", "pod-1-1 saw pod-1-2"),
      },
    ],
  })),
  {
    name: "an endpoint is here when its node name says so",
    rules: ["R-16", "R-22", "R-30"],
    steps: [
      {
        say: "a pod of this node without a node name, policies Local",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-1-1"]).map((slice) => ({
            ...slice,
            endpoints: (slice["endpoints"] as readonly RawObject[]).map(({ addresses }) => ({ addresses })),
          })),
        ],
        probes: [...asks("pod-1-3 node1 client1", "web clusterIP", "dropped"), ...asks("client1", "web externalIP", "dropped")],
      },
      {
        say: "its name is another node's",
        put: slices("web", [{ on: "pod-1-1", nodeName: "node2" }]),
        probes: asks("client1", ["web clusterIP", "web externalIP"], "dropped"),
      },
      {
        say: "its name is this node's",
        put: slices("web", ["pod-1-1"]),
        probes: [...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-1"), ...asksUnmasked("client1", "web externalIP", "pod-1-1")],
      },
    ],
  },
];
