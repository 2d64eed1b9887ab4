import type { RawObject } from "@turnout/core/testing";
import type { Probe, Scenario } from "../runner/scenario.ts";
import { addressesOf, refs, service, servicePorts, slicePorts, slices } from "../runner/short.ts";
import { asks, asksUnmasked, NODE1 } from "./probes.ts";

const OLD = "2024-01-01T00:00:00Z";
const NEW = "2024-02-01T00:00:00Z";
const SHARED = addressesOf(9, "externalIP");
const EXTERNAL = { externalIPs: Object.values(SHARED) };
const BALANCED = addressesOf(9, "loadBalancerIP");

/** A contested address, port 80. */
function contested(servers: string): readonly Probe[] {
  return asks("client1 pod-1-3 node1", SHARED, servers === "refused" || servers === "untouched" ? servers : `${servers} saw node1`, {
    port: 80,
  });
}

/** The status of a Service with these load-balancer IPs. */
function ingressOf(addresses: Readonly<Record<string, string>>): RawObject {
  return { loadBalancer: { ingress: Object.values(addresses).map((ip) => ({ ip })) } };
}

/** The same objects in another namespace. */
function inOtherNamespace(objects: readonly RawObject[]): readonly RawObject[] {
  return objects.map((object) => ({ ...object, metadata: { ...(object["metadata"] as RawObject), namespace: "other" } }));
}

/** The spec of a Service whose node port, for all protocols, is 30009. */
const NODE_PORT: RawObject = { type: "NodePort", ports: servicePorts({ name: "a", port: 80, nodePort: 30_009 }) };
const A = { ports: slicePorts(["a"]) };

/** Several Services that want one address and port. */
export const CLAIMS: readonly Scenario[] = [
  {
    name: "of two Services that claim one external IP the older has it, and the other one when it lets go",
    rules: ["R-53", "R-71"],
    steps: [
      {
        say: "the newer one is known first",
        put: [service("newer", { number: 2, created: NEW, spec: EXTERNAL }), ...slices("newer", ["pod-1-2"])],
        probes: contested("pod-1-2"),
      },
      {
        say: "the older one appears",
        put: [service("older", { number: 1, created: OLD, spec: EXTERNAL }), ...slices("older", ["pod-1-1"])],
        probes: [
          ...contested("pod-1-1"),
          ...asksUnmasked("pod-1-3", "newer clusterIP", "pod-1-2"),
          ...asksUnmasked("pod-1-3", "older clusterIP", "pod-1-1"),
        ],
      },
      { say: "the older one has no endpoints, and the newer one has some", put: slices("older", []), probes: contested("pod-1-2") },
      { say: "nor has the newer one", put: slices("newer", []), probes: contested("refused") },
      { say: "the newer one has an endpoint again", put: slices("newer", ["pod-1-2"]), probes: contested("pod-1-2") },
      { say: "the older one gives the address up", put: [service("older", { number: 1, created: OLD })], probes: contested("pod-1-2") },
      {
        say: "and takes it again, with an endpoint",
        put: [service("older", { number: 1, created: OLD, spec: EXTERNAL }), ...slices("older", ["pod-2-1"])],
        probes: contested("pod-2-1"),
      },
      { say: "the newer one's endpoints change meanwhile", put: slices("newer", ["pod-2-2"]), probes: contested("pod-2-1") },
      { say: "the proxy starts again", restart: true, probes: contested("pod-2-1") },
      { say: "the older one goes", remove: refs("older"), probes: contested("pod-2-2") },
      { say: "the newer one too", remove: refs("newer"), probes: contested("untouched") },
    ],
  },
  {
    name: "a Service that is made again is younger than the one it shared an address with",
    rules: ["R-53"],
    steps: [
      {
        say: "two that claim one address",
        put: [
          service("one", { number: 1, created: OLD, spec: EXTERNAL }),
          ...slices("one", ["pod-1-1"]),
          service("two", { number: 2, created: NEW, spec: EXTERNAL }),
          ...slices("two", ["pod-1-2"]),
        ],
        probes: contested("pod-1-1"),
      },
      { say: "the older is deleted", remove: refs("one"), probes: contested("pod-1-2") },
      {
        say: "and made again",
        put: [service("one", { number: 1, created: "2024-03-01T00:00:00Z", spec: EXTERNAL }), ...slices("one", ["pod-1-1"])],
        probes: contested("pod-1-2"),
      },
    ],
  },
  {
    name: "of two Services of one age the first by name has a contested address",
    rules: ["R-53"],
    steps: [
      {
        say: "both appear, the second one first",
        put: [
          service("beta", { number: 2, spec: EXTERNAL }),
          ...slices("beta", ["pod-1-2"]),
          service("alpha", { number: 1, spec: EXTERNAL }),
          ...slices("alpha", ["pod-1-1"]),
        ],
        probes: contested("pod-1-1"),
      },
      { say: "the first one goes", remove: refs("alpha"), probes: contested("pod-1-2") },
    ],
  },
  {
    name: "an address moves between the Services of a namespace as their endpoints come and go, and never to another namespace",
    rules: ["R-53", "R-71"],
    steps: [
      {
        say: "three Services of two namespaces, the oldest without endpoints",
        put: [
          service("blue", { number: 1, created: OLD, spec: EXTERNAL }),
          ...inOtherNamespace([service("elsewhere", { number: 2, created: NEW, spec: EXTERNAL }), ...slices("elsewhere", ["pod-2-2"])]),
          service("green", { number: 3, created: "2024-03-01T00:00:00Z", spec: EXTERNAL }),
          ...slices("green", []),
        ],
        probes: [...contested("refused"), ...asksUnmasked("pod-1-3", addressesOf(2, "clusterIP"), "pod-2-2", { port: 80 })],
      },
      {
        say: "the youngest, of the oldest one's namespace, has an endpoint",
        put: slices("green", ["pod-1-2"]),
        probes: contested("pod-1-2"),
      },
      { say: "the proxy starts again", restart: true, probes: contested("pod-1-2") },
      { say: "the oldest one is scaled up", put: slices("blue", ["pod-1-1"]), probes: contested("pod-1-1") },
      {
        say: "its last endpoint terminates and still serves",
        put: slices("blue", [{ on: "pod-1-1", ready: false, serving: true, terminating: true }]),
        probes: contested("pod-1-1"),
      },
      {
        say: "it serves no more",
        put: slices("blue", [{ on: "pod-1-1", ready: false, serving: false, terminating: true }]),
        probes: contested("pod-1-2"),
      },
      { say: "the oldest one goes: the next oldest is of the other namespace", remove: refs("blue"), probes: contested("pod-2-2") },
      {
        say: "whose endpoint is not ready for a moment",
        put: inOtherNamespace(slices("elsewhere", [{ on: "pod-2-2", ready: false, serving: false }])),
        probes: contested("refused"),
      },
    ],
  },
  {
    name: "an endpoint on another node is enough to hold an address under the Local policy, so that all nodes agree",
    rules: ["R-71", "R-33"],
    needs: ["origins"],
    steps: [
      {
        say: "the older one has an endpoint elsewhere, the newer one here",
        put: [
          service("blue", { number: 1, created: OLD, spec: { ...EXTERNAL, externalTrafficPolicy: "Local" } }),
          ...slices("blue", ["pod-2-1"]),
          service("green", { number: 2, created: NEW, spec: { ...EXTERNAL, externalTrafficPolicy: "Local" } }),
          ...slices("green", ["pod-1-2"]),
        ],
        probes: asks("client1", SHARED, "dropped", { port: 80 }),
      },
      { say: "the older one has none", put: slices("blue", []), probes: asks("client1", SHARED, "pod-1-2 saw client1", { port: 80 }) },
    ],
  },
  {
    name: "a load-balancer IP stays with a Service without endpoints when another one calls it external, and moves between load balancers",
    rules: ["R-53", "R-71"],
    steps: [
      {
        say: "without endpoints, next to an external IP",
        put: [
          service("blue", { number: 9, created: NEW, ways: ["loadBalancerIP"] }),
          ...slices("blue", []),
          service("named", { number: 2, created: OLD, spec: { externalIPs: Object.values(BALANCED) } }),
          ...slices("named", ["pod-1-1"]),
        ],
        probes: asks("client1 pod-1-3", BALANCED, "refused", { port: 80 }),
      },
      {
        say: "another Service of the namespace gets the same load-balancer IP",
        put: [
          { ...service("green", { number: 3, created: "2024-03-01T00:00:00Z", ways: ["loadBalancerIP"] }), status: ingressOf(BALANCED) },
          ...slices("green", ["pod-1-2"]),
        ],
        probes: asks("client1 pod-1-3", BALANCED, "pod-1-2 saw node1", { port: 80 }),
      },
    ],
  },
  {
    name: "UDP flows to a shared address follow the Service that has it",
    rules: ["R-71", "R-43", "R-45"],
    protocols: ["UDP"],
    needs: ["forgetsFlows"],
    steps: [
      {
        say: "two that want one address",
        put: [
          service("blue", { number: 1, created: OLD, spec: EXTERNAL }),
          ...slices("blue", ["pod-1-1"]),
          service("green", { number: 2, created: NEW, spec: EXTERNAL }),
          ...slices("green", ["pod-1-2"]),
        ],
        probes: asks("client1", SHARED, "pod-1-1 saw node1", { port: 80, keep: "early" }),
      },
      {
        say: "the older one is scaled down",
        put: slices("blue", []),
        flows: [{ kept: "early", is: "forgotten" }],
        probes: asks("client1", SHARED, "pod-1-2 saw node1", { port: 80, keep: "late" }),
      },
      {
        say: "and up again",
        put: slices("blue", ["pod-1-1"]),
        flows: [{ kept: "late", is: "forgotten" }],
        probes: contested("pod-1-1"),
      },
    ],
  },
  {
    name: "a node port that two Services claim is the older's",
    rules: ["R-53"],
    steps: [
      {
        say: "both claim it",
        put: [
          service("newer", { number: 2, created: NEW, spec: NODE_PORT }),
          ...slices("newer", ["pod-1-2"], "1", A),
          service("older", { number: 1, created: OLD, spec: NODE_PORT }),
          ...slices("older", ["pod-1-1"], "1", A),
        ],
        probes: [
          ...asks("client1", NODE1, "pod-1-1 saw node1", { port: 30_009 }),
          ...asks("client1", addressesOf(2, "clusterIP"), "pod-1-2 saw node1", { port: 80 }),
        ],
      },
      {
        say: "the older one has no endpoints: still its own",
        put: slices("older", [], "1", A),
        probes: asks("client1", NODE1, "refused", { port: 30_009 }),
      },
      { say: "the older one goes", remove: refs("older"), probes: asks("client1", NODE1, "pod-1-2 saw node1", { port: 30_009 }) },
    ],
  },
  {
    name: "a load-balancer IP and an external IP of two Services are one address",
    rules: ["R-53", "R-39"],
    steps: [
      {
        say: "the older one is restricted to one client",
        put: [
          service("older", {
            number: 9,
            created: OLD,
            ways: ["loadBalancerIP"],
            spec: { loadBalancerSourceRanges: ["203.0.113.1/32", "fd00:203::1/128"] },
          }),
          ...slices("older", ["pod-1-1"]),
          service("newer", { number: 2, created: NEW, spec: { externalIPs: Object.values(addressesOf(9, "loadBalancerIP")) } }),
          ...slices("newer", ["pod-1-2"]),
        ],
        probes: [...asks("client1", "older loadBalancerIP", "pod-1-1 saw node1"), ...asks("client2", "older loadBalancerIP", "dropped")],
      },
      {
        say: "it goes, and its restriction with it",
        remove: refs("older"),
        probes: asks("client1 client2", addressesOf(9, "loadBalancerIP"), "pod-1-2 saw node1", { port: 80 }),
      },
    ],
  },
  {
    name: "several Services may share an address as long as their ports differ",
    rules: ["R-53"],
    steps: [
      {
        say: "two ports of one address",
        put: [
          service("one", { number: 1, created: OLD, spec: { ...EXTERNAL, ports: servicePorts({ name: "a", port: 80 }) } }),
          ...slices("one", ["pod-1-1"], "1", A),
          service("two", { number: 2, created: NEW, spec: { ...EXTERNAL, ports: servicePorts({ name: "a", port: 81 }) } }),
          ...slices("two", ["pod-1-2"], "1", A),
        ],
        probes: [...contested("pod-1-1"), ...asks("client1", SHARED, "pod-1-2 saw node1", { port: 81 })],
      },
      {
        say: "the newer one wants both",
        put: [
          service("two", {
            number: 2,
            created: NEW,
            spec: { ...EXTERNAL, ports: servicePorts({ name: "b", port: 80 }, { name: "a", port: 81 }) },
          }),
        ],
        probes: [...contested("pod-1-1"), ...asks("client1", SHARED, "pod-1-2 saw node1", { port: 81 })],
      },
      {
        say: "the older one goes",
        remove: refs("one"),
        probes: [...contested("refused"), ...asks("client1", SHARED, "pod-1-2 saw node1", { port: 81 })],
      },
    ],
  },
  ...(["TCP", "UDP", "SCTP"] as const).map((protocol): Scenario => ({
    name: `several Services may share an address as long as their protocols differ: ${protocol}`,
    rules: ["R-53", "R-04"],
    protocols: [protocol],
    steps: [
      {
        say: "the older one has the other protocols",
        put: [
          service("older", {
            number: 1,
            created: OLD,
            spec: {
              ...EXTERNAL,
              ports: servicePorts({
                name: "a",
                port: 80,
                protocols: (["TCP", "UDP", "SCTP"] as const).filter((other) => other !== protocol),
              }),
            },
          }),
          ...slices("older", ["pod-1-1"], "1", A),
          service("newer", {
            number: 2,
            created: NEW,
            spec: { ...EXTERNAL, ports: servicePorts({ name: "a", port: 80, protocols: [protocol] }) },
          }),
          ...slices("newer", ["pod-1-2"], "1", A),
        ],
        probes: contested("pod-1-2"),
      },
    ],
  })),
];
