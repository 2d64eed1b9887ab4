import type { Scenario } from "../runner/scenario.ts";
import { refs, service, slices } from "../runner/short.ts";
import type { EndpointOn } from "../runner/short.ts";
import { EVERY_CLIENT, asks, EVERY_WAY, OUTSIDE_WAYS } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const BOTH_LOCAL = { internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" };

/** An endpoint that shuts down in order. */
function leaving(on: string): EndpointOn {
  return { on, ready: false, serving: true, terminating: true };
}

const STATES: readonly (readonly [string, Omit<EndpointOn, "on">, "ready" | "fallback" | "never"])[] = [
  ["ready", { ready: true, serving: true, terminating: false }, "ready"],
  ["ready, with the rest not said", { ready: true }, "ready"],
  ["ready because nothing else is said", {}, "ready"],
  ["ready and terminating", { ready: true, serving: true, terminating: true }, "ready"],
  ["ready and terminating but not serving", { ready: true, serving: false, terminating: true }, "ready"],
  ["serving and terminating", { ready: false, serving: true, terminating: true }, "fallback"],
  ["terminating, with serving not said", { ready: false, terminating: true }, "fallback"],
  ["terminating and not serving", { ready: false, serving: false, terminating: true }, "never"],
  ["neither ready nor serving", { ready: false, serving: false, terminating: false }, "never"],
  ["serving but neither ready nor terminating", { ready: false, serving: true, terminating: false }, "never"],
];

/** Conditions of endpoints: who is used, and when. */
export const TERMINATING: readonly Scenario[] = [
  ...STATES.map(([state, conditions, used]): Scenario => ({
    name: `an endpoint that is ${state} ${used === "ready" ? "is used" : used === "fallback" ? "is used while nothing is ready" : "is never used"}`,
    rules: ["R-14", "R-17"],
    subtleties: [2],
    steps: [
      {
        say: "it alone",
        put: [service("web", { number: 1, ways: WAYS }), ...slices("web", [{ on: "pod-1-1", ...conditions }])],
        probes: asks("client1", EVERY_WAY, used === "never" ? "refused" : "pod-1-1 saw node1"),
      },
      {
        say: "a ready one beside it",
        put: slices("web", [{ on: "pod-1-1", ...conditions }, "pod-2-1"]),
        probes: asks("client1", EVERY_WAY, used === "ready" ? "pod-1-1 pod-2-1 saw node1" : "pod-2-1 saw node1"),
      },
      {
        say: "one that leaves beside it",
        put: slices("web", [{ on: "pod-1-1", ...conditions }, leaving("pod-2-1")]),
        probes: asks(
          "client1",
          EVERY_WAY,
          used === "ready" ? "pod-1-1 saw node1" : used === "fallback" ? "pod-1-1 pod-2-1 saw node1" : "pod-2-1 saw node1",
        ),
      },
    ],
  })),
  {
    name: "a service that goes away serves to the end, and refuses afterwards",
    rules: ["R-17", "R-23", "R-29"],
    steps: [
      { say: "two endpoints", put: [service("web", { number: 1, ways: WAYS }), ...slices("web", ["pod-1-1", "pod-2-1"])] },
      {
        say: "one leaves",
        put: slices("web", [leaving("pod-1-1"), "pod-2-1"]),
        probes: [...asks("pod-1-3", "web clusterIP", "pod-2-1 saw pod-1-3"), ...asks("client1", OUTSIDE_WAYS, "pod-2-1 saw node1")],
      },
      {
        say: "both leave",
        put: slices("web", [leaving("pod-1-1"), leaving("pod-2-1")]),
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
          ...asks("node1", "web clusterIP", "pod-1-1 pod-2-1 saw node1"),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 pod-2-1 saw node1"),
        ],
      },
      { say: "both are gone", put: slices("web", []), probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
    ],
  },
  {
    name: "the local and the cluster pool fall back to terminating endpoints each on its own",
    rules: ["R-18", "R-22", "R-30", "R-31", "R-50"],
    subtleties: [6, 7],
    steps: [
      {
        say: "policies Local; the endpoint here leaves, one elsewhere is ready",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { ...BOTH_LOCAL, healthCheckNodePort: 30_199 } }),
          ...slices("web", [leaving("pod-1-1"), "pod-2-1"]),
        ],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
          ...asks("node1 client1", "web clusterIP", "pod-1-1 saw node1"),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-2-1 saw node1"),
        ],
      },
      {
        say: "a ready one comes here",
        put: slices("web", [leaving("pod-1-1"), "pod-1-2", "pod-2-1"]),
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-2 saw pod-1-3"),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-2 saw client1"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-2 pod-2-1 saw pod-1-3"),
        ],
      },
      {
        say: "all leave",
        put: slices("web", [leaving("pod-1-1"), leaving("pod-1-2"), leaving("pod-2-1")]),
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 pod-1-2 saw pod-1-3"),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 pod-1-2 saw client1"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-1-1 pod-1-2 pod-2-1 saw pod-1-3"),
        ],
      },
      {
        say: "only one that leaves elsewhere",
        put: slices("web", [{ on: "pod-1-1", ready: false, serving: false, terminating: true }, leaving("pod-2-1")]),
        probes: [
          ...asks(EVERY_CLIENT, "web clusterIP", "dropped"),
          ...asks("client1", OUTSIDE_WAYS, "dropped"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 saw pod-1-3"),
        ],
      },
      { say: "gone", put: slices("web", []), probes: asks(EVERY_CLIENT, EVERY_WAY, "refused") },
    ],
  },
  {
    name: "a leaving endpoint here is not used for what may go anywhere while one elsewhere is ready",
    rules: ["R-18", "R-28"],
    subtleties: [6],
    steps: [
      {
        say: "the Local internal policy alone",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local" } }),
          ...slices("web", [leaving("pod-1-1"), "pod-2-1"]),
        ],
        probes: [...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"), ...asks(EVERY_CLIENT, OUTSIDE_WAYS, "pod-2-1 saw node1")],
      },
      {
        say: "the Local external policy alone",
        put: [service("web", { number: 1, ways: WAYS, spec: { externalTrafficPolicy: "Local" } })],
        probes: [...asks("client1", "web clusterIP", "pod-2-1 saw node1"), ...asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1")],
      },
    ],
  },
  {
    name: "the fallback to terminating endpoints doesn't look at hints",
    rules: ["R-18", "R-20"],
    subtleties: [6],
    steps: [
      {
        say: "ready ones are narrowed",
        put: [
          service("web", { number: 1 }),
          ...slices("web", [
            { on: "pod-1-1", zones: ["zone-a"] },
            { on: "pod-2-1", zones: ["zone-b"] },
          ]),
        ],
        probes: asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
      },
      {
        say: "leaving ones are not",
        put: slices("web", [
          { ...leaving("pod-1-1"), zones: ["zone-a"] },
          { ...leaving("pod-2-1"), zones: ["zone-b"] },
        ]),
        probes: asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
      },
      {
        say: "a ready one for the other zone is all there is",
        put: slices("web", [
          { ...leaving("pod-1-1"), zones: ["zone-a"] },
          { on: "pod-2-1", zones: ["zone-b"] },
        ]),
        probes: asks("pod-1-3", "web clusterIP", "pod-2-1 saw pod-1-3"),
      },
      { say: "gone", remove: refs("web") },
    ],
  },
];
