import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, refs, service, servicePorts, slicePorts, sliceRefs, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, asksUnmasked, EVERY_WAY, NODE1, nodePortOf, OUTSIDE_WAYS } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const WEB = service("web", { number: 1, ways: WAYS });

/** What operators do to Services in the course of time. */
export const LIFECYCLE: readonly Scenario[] = [
  {
    name: "Services come and go without each other's notice",
    rules: ["R-22", "R-48", "R-57", "R-58"],
    steps: [
      {
        say: "two services",
        put: [WEB, ...slices("web", ["pod-1-1"]), service("api", { number: 2, ways: WAYS }), ...slices("api", ["pod-1-2", "pod-2-1"])],
        probes: [
          ...asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
          ...asks("client1", ["api clusterIP", "api nodePort@node1", "api externalIP"], "pod-1-2 pod-2-1 saw node1"),
        ],
      },
      {
        say: "the first one goes",
        remove: refs("web"),
        probes: [
          ...asks(EVERY_CLIENT, addressesOf(1, "clusterIP"), "dropped", { port: 80 }),
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
          ...asks("client1", [addressesOf(1, "externalIP"), addressesOf(1, "loadBalancerIP")], "untouched", { port: 80 }),
          ...asks("client1", ["api clusterIP", "api nodePort@node1", "api externalIP"], "pod-1-2 pod-2-1 saw node1"),
        ],
      },
      {
        say: "a third one comes",
        put: [service("shop", { number: 3, ways: WAYS }), ...slices("shop", ["pod-2-2"])],
        probes: [
          ...asks("client1", ["shop clusterIP", "shop nodePort@node1", "shop loadBalancerIP"], "pod-2-2 saw node1"),
          ...asks("client1", ["api clusterIP", "api nodePort@node1"], "pod-1-2 pod-2-1 saw node1"),
        ],
      },
      {
        say: "all go",
        remove: [...refs("api"), ...refs("shop")],
        probes: [2, 3].flatMap((number) => asks(EVERY_CLIENT, addressesOf(number, "clusterIP"), "dropped", { port: 80 })),
      },
    ],
  },
  {
    name: "a Service that is made again under its old name works at its new addresses",
    rules: ["R-22", "R-28", "R-58"],
    steps: [
      { say: "a service", put: [WEB, ...slices("web", ["pod-1-1"])], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      { say: "deleted", remove: refs("web") },
      {
        say: "made again, elsewhere",
        put: [service("web", { number: 2, ways: WAYS }), ...slices("web", ["pod-2-1"])],
        probes: [
          ...asks("client1", EVERY_WAY, "pod-2-1 saw node1"),
          ...asks("pod-1-3", addressesOf(1, "clusterIP"), "dropped", { port: 80 }),
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
        ],
      },
      {
        say: "its addresses change in place",
        put: [service("web", { number: 3, ways: WAYS })],
        probes: [
          ...asks("client1", EVERY_WAY, "pod-2-1 saw node1"),
          ...asks("pod-1-3", addressesOf(2, "clusterIP"), "dropped", { port: 80 }),
          ...asks("client1", addressesOf(2, "externalIP"), "untouched", { port: 80 }),
        ],
      },
    ],
  },
  {
    name: "addresses pass from a Service that goes to one that comes at the same moment",
    rules: ["R-22", "R-28", "R-53"],
    steps: [
      { say: "a service", put: [WEB, ...slices("web", ["pod-1-1"])], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      {
        say: "it goes, another one comes with its addresses",
        put: [service("heir", { number: 1, ways: WAYS }), ...slices("heir", ["pod-2-1"])],
        remove: refs("web"),
        probes: asks("client1", ["heir clusterIP", "heir nodePort@node1", "heir externalIP", "heir loadBalancerIP"], "pod-2-1 saw node1"),
      },
    ],
  },
  {
    name: "type, ports and endpoints of a Service are edited one after the other",
    rules: ["R-22", "R-28", "R-29", "R-37", "R-47", "R-57"],
    steps: [
      {
        say: "a ClusterIP service",
        put: [service("web", { number: 1 }), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: [
          ...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1"),
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
        ],
      },
      {
        say: "NodePort",
        put: [service("web", { number: 1, ways: ["nodePort"] })],
        probes: asks("client1", ["web clusterIP", "web nodePort@node1"], "pod-1-1 pod-2-1 saw node1"),
      },
      {
        say: "another node port",
        put: [
          service("web", {
            number: 1,
            spec: { type: "NodePort", ports: servicePorts({ name: "a", port: 80, nodePort: 30_002 }) },
          }),
          ...slices("web", ["pod-1-1", "pod-2-1"], "1", { ports: slicePorts(["a"]) }),
        ],
        probes: [
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
          ...asks("client1", NODE1, "pod-1-1 pod-2-1 saw node1", { port: nodePortOf(2) }),
        ],
      },
      {
        say: "LoadBalancer",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1"),
      },
      {
        say: "another port",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { ports: servicePorts({ name: "a", port: 81, nodePort: 30_001 }) } }),
          ...slices("web", ["pod-1-1", "pod-2-1"], "1", { ports: slicePorts(["a"]) }),
        ],
        probes: [
          ...asks("client1", ["web clusterIP", "web externalIP", "web loadBalancerIP"], "pod-1-1 pod-2-1 saw node1", { port: 81 }),
          ...asks("client1", "web clusterIP", "refused", { port: 80 }),
          ...asks("client1", ["web externalIP", "web loadBalancerIP"], "untouched", { port: 80 }),
        ],
      },
      {
        say: "two ports",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: { ports: servicePorts({ name: "a", port: 81, nodePort: 30_001 }, { name: "b", port: 80, nodePort: 30_002 }) },
          }),
          ...slices("web", ["pod-1-1", "pod-2-1"], "1", { ports: slicePorts(["a", "b"]) }),
        ],
        probes: [80, 81].flatMap((port) => asks("client1", ["web clusterIP", "web loadBalancerIP"], "pod-1-1 pod-2-1 saw node1", { port })),
      },
      {
        say: "no endpoints",
        put: slices("web", [], "1", { ports: slicePorts(["a", "b"]) }),
        probes: asks(EVERY_CLIENT, EVERY_WAY, "refused"),
      },
      {
        say: "endpoints are back, and it is a ClusterIP service",
        put: [service("web", { number: 1 }), ...slices("web", ["pod-1-2"])],
        probes: [
          ...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-2"),
          ...asks("client1", "web clusterIP", "refused", { port: 81 }),
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
          ...asks("client1", [addressesOf(1, "externalIP"), addressesOf(1, "loadBalancerIP")], "untouched", { port: 80 }),
        ],
      },
    ],
  },
  {
    name: "an edit that is undone at once changes nothing",
    rules: ["R-57"],
    subtleties: [17],
    steps: [
      { say: "a service", put: [WEB, ...slices("web", ["pod-1-1"])], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      {
        say: "changed and changed back",
        put: [
          service("web", { number: 2, spec: { internalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-2-1"]),
          WEB,
          ...slices("web", ["pod-1-1"]),
        ],
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
      { say: "put again as it is", put: [WEB, ...slices("web", ["pod-1-1"])], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
    ],
  },
  {
    name: "a new start of the proxy finds what is there and goes on",
    rules: ["R-58"],
    steps: [
      {
        say: "two services, one without endpoints",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"]), service("empty", { number: 2, ways: WAYS })],
        probes: [...asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1"), ...asks("client1", "empty clusterIP", "refused")],
      },
      {
        say: "a new start",
        restart: true,
        probes: [
          ...asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1"),
          ...asks("client1", ["empty clusterIP", "empty nodePort@node1", "empty externalIP"], "refused"),
        ],
      },
      {
        say: "a new start with changes at once",
        restart: true,
        put: [
          service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Local", internalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-1-2", "pod-2-1"]),
          ...slices("empty", ["pod-2-2"]),
        ],
        probes: [
          ...asks("client1", OUTSIDE_WAYS, "pod-1-2 saw client1"),
          ...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-2"),
          ...asks("client1", "empty clusterIP", "pod-2-2 saw node1"),
        ],
      },
      {
        say: "a new start, and all is deleted",
        restart: true,
        remove: [...refs("web"), ...refs("empty")],
        probes: [
          ...[1, 2].flatMap((number) => asks(EVERY_CLIENT, addressesOf(number, "clusterIP"), "dropped", { port: 80 })),
          ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
        ],
      },
      { say: "a new start with nothing", restart: true, probes: asks("client1", addressesOf(1, "clusterIP"), "dropped", { port: 80 }) },
      {
        say: "a service again",
        put: [WEB, ...slices("web", ["pod-1-1"])],
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
    ],
  },
  {
    name: "a Service whose endpoints are taken away and given back is refused meanwhile",
    rules: ["R-23", "R-29", "R-57"],
    steps: [
      { say: "a service", put: [WEB, ...slices("web", ["pod-1-1"])], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      { say: "its slices are deleted", remove: sliceRefs("web"), probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
      { say: "they are back", put: slices("web", ["pod-2-1"]), probes: asks("client1", EVERY_WAY, "pod-2-1 saw node1") },
      {
        say: "all pods are evicted",
        put: slices("web", [{ on: "pod-2-1", ready: false, serving: false, terminating: true }]),
        probes: asks(EVERY_CLIENT, EVERY_WAY, "refused"),
      },
      { say: "others take their place", put: slices("web", ["pod-1-2"]), probes: asks("client1", EVERY_WAY, "pod-1-2 saw node1") },
    ],
  },
];
