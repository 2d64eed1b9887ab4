import type { FlowExpectation, Probe, Scenario } from "../runner/scenario.ts";
import { addressesOf, refs, service, servicePorts, slicePorts, slices } from "../runner/short.ts";
import type { EndpointOn } from "../runner/short.ts";
import { asks, NODE1, nodePortOf } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const WEB = service("web", { number: 1, ways: WAYS });
const UDP = { protocols: ["UDP"] } as const;
const LEAVING = { ready: false, serving: true, terminating: true };

/** One kept flow for each way, `clusterIP`, `nodePort`, `externalIP` and `loadBalancerIP`, and `pod` and `node` to the cluster IP; to one endpoint. */
function keepFlows(server: string): readonly Probe[] {
  return [
    ...asks("client1", "web clusterIP", `${server} saw node1`, { keep: "clusterIP" }),
    ...asks("client1", "web nodePort@node1", `${server} saw node1`, { keep: "nodePort" }),
    ...asks("client1", "web externalIP", `${server} saw node1`, { keep: "externalIP" }),
    ...asks("client1", "web loadBalancerIP", `${server} saw node1`, { keep: "loadBalancerIP" }),
    ...asks("pod-1-3", "web clusterIP", `${server} saw pod-1-3`, { keep: "pod" }),
    ...asks("node1", "web clusterIP", `${server} saw node1`, { keep: "node" }),
  ];
}

const ALL_KEPT = ["clusterIP", "nodePort", "externalIP", "loadBalancerIP", "pod", "node"];

function expectAll(is: FlowExpectation["is"], kept: readonly string[] = ALL_KEPT): readonly FlowExpectation[] {
  return kept.map((name) => ({ kept: name, is }));
}

/** Endpoints come to be like this after `pod-1-1` was alone, and its flows meet that fate. */
const CHANGES: readonly (readonly [string, readonly (string | EndpointOn)[], FlowExpectation["is"], string])[] = [
  ["another one comes", ["pod-1-1", "pod-2-1"], "remembered", "pod-1-1 pod-2-1"],
  ["it leaves while another one serves", [{ on: "pod-1-1", ...LEAVING }, "pod-2-1"], "remembered", "pod-2-1"],
  ["it leaves and is all there is", [{ on: "pod-1-1", ...LEAVING }], "remembered", "pod-1-1"],
  ["it serves and is neither ready nor terminating", [{ on: "pod-1-1", ready: false, serving: true }, "pod-2-1"], "remembered", "pod-2-1"],
  ["it isn't ready, and says nothing of serving", [{ on: "pod-1-1", ready: false }, "pod-2-1"], "remembered", "pod-2-1"],
  ["it ends", [{ on: "pod-1-1", ready: false, serving: false, terminating: true }, "pod-2-1"], "forgotten", "pod-2-1"],
  ["it is neither ready nor serving", [{ on: "pod-1-1", ready: false, serving: false }, "pod-2-1"], "forgotten", "pod-2-1"],
  ["another one takes its place", ["pod-2-1"], "forgotten", "pod-2-1"],
  ["it goes, and nobody is left", [], "forgotten", ""],
];

const CONTESTED = { externalIPs: Object.values(addressesOf(9, "externalIP")) };

/** How a Service lets go of an address, and whether the next one shares its endpoint. */
const PASSINGS = [
  ["goes", true],
  ["goes", false],
  ["gives it up", true],
  ["gives it up", false],
  ["gives it up while the other one changes", true],
  ["gives it up while the other one changes", false],
] as const;

/** UDP flows the kernel remembers: which are forgotten and which live on. */
export const UDP_FLOWS: readonly Scenario[] = [
  ...CHANGES.map(([change, after, is, servers]): Scenario => ({
    name: `UDP flows to an endpoint are ${is} when ${change}`,
    rules: is === "remembered" ? ["R-42"] : servers === "" ? ["R-41", "R-43"] : ["R-41"],
    subtleties: [20],
    ...UDP,
    steps: [
      { say: "flows to a single endpoint", put: [WEB, ...slices("web", ["pod-1-1"])], probes: keepFlows("pod-1-1") },
      {
        say: change,
        put: slices("web", after),
        flows: expectAll(is),
        probes: asks("client2", ["web clusterIP", "web nodePort@node1"], servers === "" ? "refused" : `${servers} saw node1`),
      },
    ],
  })),
  {
    name: "a UDP flow outlives changes of policy, of the Service's other ports and of other Services, and a new start",
    rules: ["R-42", "R-44"],
    subtleties: [20],
    ...UDP,
    steps: [
      {
        say: "flows to a single endpoint",
        put: [WEB, ...slices("web", ["pod-2-1"]), service("api", { number: 2, ways: WAYS }), ...slices("api", ["pod-1-2"])],
        probes: keepFlows("pod-2-1"),
      },
      {
        say: "policies become Local: no endpoint here",
        put: [service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" } })],
        flows: expectAll("remembered"),
      },
      { say: "another Service's endpoint goes", put: slices("api", []), flows: expectAll("remembered") },
      { say: "another Service goes", remove: refs("api"), flows: expectAll("remembered") },
      { say: "a new start", restart: true, flows: expectAll("remembered") },
      { say: "policies become Cluster", put: [WEB], flows: expectAll("remembered") },
      {
        say: "affinity and a label",
        put: [service("web", { number: 1, ways: WAYS, spec: { sessionAffinity: "ClientIP" }, labels: { app: "web" } })],
        flows: expectAll("remembered"),
      },
      { say: "its endpoint goes", put: slices("web", ["pod-1-1"]), flows: expectAll("forgotten") },
    ],
  },
  {
    name: "an endpoint that goes here is not hidden by those elsewhere under the Local policies",
    rules: ["R-41"],
    subtleties: [20],
    ...UDP,
    steps: [
      {
        say: "a flow to the endpoint here",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-1-1", "pod-2-1"]),
        ],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3", { keep: "pod" }),
          ...asks("client1", "web loadBalancerIP", "pod-1-1 saw client1", { keep: "client" }),
        ],
      },
      { say: "it goes", put: slices("web", ["pod-2-1"]), flows: expectAll("forgotten", ["pod", "client"]) },
      {
        say: "another one comes here",
        put: slices("web", ["pod-1-2", "pod-2-1"]),
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-2 saw pod-1-3"),
          ...asks("client1", "web loadBalancerIP", "pod-1-2 saw client1"),
        ],
      },
    ],
  },
  {
    name: "UDP clients that talked into the void are freed when a Service appears",
    rules: ["R-43"],
    subtleties: [20],
    ...UDP,
    steps: [
      {
        say: "nobody has the addresses",
        probes: [
          ...asks("client1", addressesOf(1, "externalIP"), "untouched", { port: 80, keep: "externalIP" }),
          ...asks("client1", addressesOf(1, "loadBalancerIP"), "untouched", { port: 80, keep: "loadBalancerIP" }),
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1), keep: "nodePort" }),
        ],
      },
      {
        say: "a Service has them",
        put: [WEB, ...slices("web", ["pod-1-1"])],
        flows: expectAll("forgotten", ["externalIP", "loadBalancerIP", "nodePort"]),
        probes: asks("client2", "web externalIP", "pod-1-1 saw node1"),
      },
    ],
  },
  {
    name: "UDP flows are forgotten when their address is given up, and others not",
    rules: ["R-44", "R-42"],
    subtleties: [20],
    ...UDP,
    steps: [
      { say: "flows to a single endpoint", put: [WEB, ...slices("web", ["pod-1-1"])], probes: keepFlows("pod-1-1") },
      {
        say: "the external IP is given up",
        put: [service("web", { number: 1, ways: ["nodePort", "loadBalancerIP"] })],
        flows: [
          ...expectAll("forgotten", ["externalIP"]),
          ...expectAll("remembered", ["clusterIP", "nodePort", "loadBalancerIP", "pod", "node"]),
        ],
      },
      {
        say: "the load-balancer IP",
        put: [service("web", { number: 1, ways: ["nodePort"] })],
        flows: [...expectAll("forgotten", ["loadBalancerIP"]), ...expectAll("remembered", ["clusterIP", "nodePort", "pod", "node"])],
      },
      {
        say: "the node port",
        put: [service("web", { number: 1 })],
        flows: [...expectAll("forgotten", ["nodePort"]), ...expectAll("remembered", ["clusterIP", "pod", "node"])],
      },
      { say: "the Service goes", remove: refs("web"), flows: expectAll("forgotten", ["clusterIP", "pod", "node"]) },
    ],
  },
  {
    name: "UDP flows are forgotten when their port is given up, and those of other ports not",
    rules: ["R-44", "R-42"],
    subtleties: [20],
    ...UDP,
    steps: [
      {
        say: "flows to two ports of one address",
        put: [
          service("web", { number: 1, spec: { ports: servicePorts({ name: "a", port: 80 }, { name: "b", port: 81 }) } }),
          ...slices("web", ["pod-1-1"], "1", { ports: slicePorts(["a", "b"]) }),
        ],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { port: 80, keep: "a" }),
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { port: 81, keep: "b" }),
        ],
      },
      {
        say: "one is given up",
        put: [service("web", { number: 1, spec: { ports: servicePorts({ name: "a", port: 80 }) } })],
        flows: [...expectAll("remembered", ["a"]), ...expectAll("forgotten", ["b"])],
        probes: asks("client2", "web clusterIP", "refused", { port: 81 }),
      },
    ],
  },
  {
    name: "UDP flows to an endpoint are remembered when it serves, isn't ready and no other is left",
    rules: ["R-42"],
    subtleties: [20],
    // A proxy with sockets of its own refuses by closing the socket, for clients with a flow, too.
    needs: ["clientAddress"],
    ...UDP,
    steps: [
      { say: "flows to a single endpoint", put: [WEB, ...slices("web", ["pod-1-1"])], probes: keepFlows("pod-1-1") },
      {
        say: "it isn't ready, as a mirrored slice has it",
        put: slices("web", [{ on: "pod-1-1", ready: false }]),
        flows: expectAll("remembered"),
        probes: asks("client2", ["web clusterIP", "web nodePort@node1"], "refused"),
      },
    ],
  },
  {
    name: "UDP flows are forgotten when their port is renamed and has no endpoints then",
    rules: ["R-43", "R-45"],
    subtleties: [20],
    ...UDP,
    steps: [
      { say: "flows to a single endpoint", put: [WEB, ...slices("web", ["pod-1-1"])], probes: keepFlows("pod-1-1") },
      {
        say: "the Service's port has another name, the slices' not yet",
        put: [service("web", { number: 1, ways: WAYS, spec: { ports: servicePorts({ name: "new", port: 80, nodePort: nodePortOf(1) }) } })],
        flows: expectAll("forgotten"),
        probes: asks("client2", ["web clusterIP", "web nodePort@node1"], "refused"),
      },
    ],
  },
  ...PASSINGS.map(([how, isShared]): Scenario => ({
    name: `a UDP flow to an address that passes to another Service because its own ${how} is ${isShared ? "remembered when that has its endpoint too" : "forgotten when that has other endpoints"}`,
    rules: ["R-45", "R-53"],
    subtleties: [20],
    ...UDP,
    steps: [
      {
        say: "two Services claim one address, the older has it",
        put: [
          service("older", { number: 1, spec: CONTESTED }),
          ...slices("older", ["pod-1-1"]),
          service("newer", { number: 2, created: "2024-02-01T00:00:00Z", spec: CONTESTED }),
          ...slices("newer", isShared ? ["pod-1-1", "pod-1-2"] : ["pod-1-2"]),
        ],
        probes: asks("client1", addressesOf(9, "externalIP"), "pod-1-1 saw node1", { port: 80, keep: "flow" }),
      },
      {
        say: `the older one ${how}`,
        put: [
          ...(how === "gives it up while the other one changes" ? slices("newer", ["pod-2-1"], "2") : []),
          ...(how === "goes" ? [] : [service("older", { number: 1 })]),
        ],
        remove: how === "goes" ? refs("older") : [],
        flows: expectAll(isShared ? "remembered" : "forgotten", ["flow"]),
        probes: asks(
          "client2",
          addressesOf(9, "externalIP"),
          `${isShared ? "pod-1-1 pod-1-2" : "pod-1-2"}${how.includes("while") ? " pod-2-1" : ""} saw node1`,
          { port: 80 },
        ),
      },
    ],
  })),
];
