import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { service, servicePorts, slicePorts, slices } from "../runner/short.ts";
import { asks, asksUnmasked, EVERY_WAY, OUTSIDE_WAYS } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const THREE = ["pod-1-1", "pod-1-2", "pod-2-1"];
const ALL = "pod-1-1 pod-1-2 pod-2-1";

/** The fields of a spec that keep a client with an endpoint. */
function withAffinity(seconds?: number): RawObject {
  return {
    sessionAffinity: "ClientIP",
    ...(seconds === undefined ? {} : { sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } }),
  };
}

/** A Service called `web`, in every way, whose clients are kept for ten minutes. */
export const AFFINE: RawObject = service("web", { number: 1, ways: WAYS, spec: withAffinity(600) });
const LOOSE = service("web", { number: 1, ways: WAYS });

/** Clients that stay with their endpoint. */
export const AFFINITY: readonly Scenario[] = [
  {
    name: "an affine client stays with its endpoint, through whichever address it comes",
    rules: ["R-08", "R-46", "R-56"],
    subtleties: [14],
    steps: [
      {
        say: "clients meet a single endpoint",
        put: [AFFINE, ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "client1" }),
          ...asks("pod-1-3", "web externalIP", "pod-1-1 saw node1", { keep: "pod" }),
          ...asks("node1", "web nodePort@node1", "pod-1-1 saw node1", { keep: "node" }),
        ],
      },
      {
        say: "two more come",
        put: slices("web", THREE),
        probes: [
          ...asks("client1", EVERY_WAY, `${ALL} saw node1`, { like: { kept: "client1", goes: "same" } }),
          ...asks("pod-1-3", "web clusterIP", `${ALL} saw pod-1-3`, { like: { kept: "pod", goes: "same" } }),
          ...asks("pod-1-3", OUTSIDE_WAYS, `${ALL} saw node1`, { like: { kept: "pod", goes: "same" } }),
          ...asks("node1", EVERY_WAY, `${ALL} saw node1`, { like: { kept: "node", goes: "same" } }),
          ...asks("client2", EVERY_WAY, `${ALL} saw node1`),
        ],
      },
      {
        say: "the first one leaves the list's head to another",
        put: slices("web", ["pod-2-2", "pod-2-1", "pod-1-1"]),
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 pod-2-2 saw node1", { like: { kept: "client1", goes: "same" } }),
      },
    ],
  },
  {
    name: "affinity lasts as long as it may be asked for",
    rules: ["R-08", "R-46"],
    fakeOnly: "a day is long",
    steps: [
      {
        say: "a client meets the single endpoint of a Service that remembers for a day",
        put: [service("web", { number: 1, ways: WAYS, spec: withAffinity(86_400) }), ...slices("web", ["pod-1-1"])],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "client1" }),
      },
      {
        say: "it comes back when the day is nearly over, and two more endpoints are there",
        waitSeconds: 86_000,
        put: slices("web", THREE),
        probes: asks("client1", EVERY_WAY, `${ALL} saw node1`, { like: { kept: "client1", goes: "same" } }),
      },
      {
        say: "the day is over",
        waitSeconds: 401,
        probes: asks("client1", EVERY_WAY, `${ALL} saw node1`, { like: { kept: "client1", goes: "free" } }),
      },
    ],
  },
  {
    name: "affinity ends when a client has not come for the timeout, and each connection renews it",
    rules: ["R-08", "R-46"],
    subtleties: [14],
    steps: [
      {
        say: "a client and a pod meet a single endpoint",
        put: [service("web", { number: 1, spec: withAffinity(4) }), ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "first" }),
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3", { keep: "pod" }),
        ],
      },
      {
        say: "others come; they come again in time",
        waitSeconds: 2.5,
        put: slices("web", THREE),
        probes: [
          ...asks("client1", "web clusterIP", `${ALL} saw node1`, { keep: "second", like: { kept: "first", goes: "same" } }),
          ...asks("pod-1-3", "web clusterIP", `${ALL} saw pod-1-3`, { keep: "pod again", like: { kept: "pod", goes: "same" } }),
        ],
      },
      {
        say: "and again, later than the timeout after the first time",
        waitSeconds: 2.5,
        probes: [
          ...asks("client1", "web clusterIP", `${ALL} saw node1`, { like: { kept: "first", goes: "same" } }),
          ...asks("pod-1-3", "web clusterIP", `${ALL} saw pod-1-3`, { like: { kept: "pod", goes: "same" } }),
        ],
      },
      {
        say: "they stay away too long",
        waitSeconds: 5,
        probes: [
          ...asks("client1", "web clusterIP", `${ALL} saw node1`, { like: { kept: "second", goes: "free" } }),
          ...asks("pod-1-3", "web clusterIP", `${ALL} saw pod-1-3`, { like: { kept: "pod again", goes: "free" } }),
        ],
      },
    ],
  },
  {
    name: "affinity lasts three hours unless said otherwise",
    rules: ["R-08"],
    fakeOnly: "three hours are long",
    steps: [
      {
        say: "no timeout is given",
        put: [service("web", { number: 1, spec: withAffinity() }), ...slices("web", ["pod-1-1"])],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "first" }),
      },
      {
        say: "almost three hours later",
        waitSeconds: 10_790,
        put: slices("web", THREE),
        probes: asks("client1", "web clusterIP", `${ALL} saw node1`, { like: { kept: "first", goes: "same" } }),
      },
      {
        say: "a bit more than three hours later",
        waitSeconds: 20,
        probes: asks("client1", "web clusterIP", `${ALL} saw node1`, { like: { kept: "first", goes: "free" } }),
      },
    ],
  },
  {
    name: "affinity can be switched on and off",
    rules: ["R-08", "R-46"],
    steps: [
      {
        say: "off: a client meets a single endpoint",
        put: [LOOSE, ...slices("web", ["pod-1-1"])],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "off" }),
      },
      {
        say: "on: what was before doesn't count",
        put: [AFFINE, ...slices("web", THREE)],
        probes: asks("client1", "web clusterIP", `${ALL} saw node1`, { like: { kept: "off", goes: "free" } }),
      },
      {
        say: "another client meets a single endpoint",
        put: slices("web", ["pod-2-1"]),
        probes: asks("client2", "web clusterIP", "pod-2-1 saw node1", { keep: "on" }),
      },
      {
        say: "others come",
        put: slices("web", THREE),
        probes: asks("client2", EVERY_WAY, `${ALL} saw node1`, { like: { kept: "on", goes: "same" } }),
      },
      {
        say: "off again",
        put: [LOOSE],
        probes: asks("client2", EVERY_WAY, `${ALL} saw node1`, { like: { kept: "on", goes: "free" } }),
      },
    ],
  },
  {
    name: "a shorter timeout counts from the next connection on",
    rules: ["R-08"],
    steps: [
      {
        say: "a long timeout",
        put: [AFFINE, ...slices("web", ["pod-1-1"])],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "long" }),
      },
      {
        say: "a short one; the client comes",
        put: [service("web", { number: 1, ways: WAYS, spec: withAffinity(2) })],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "short" }),
      },
      {
        say: "it stays away too long",
        waitSeconds: 3,
        put: slices("web", THREE),
        probes: asks("client1", "web clusterIP", `${ALL} saw node1`, { like: { kept: "short", goes: "free" } }),
      },
    ],
  },
  {
    name: "each port of a Service and each Service has affinity of its own",
    rules: ["R-46"],
    subtleties: [14],
    steps: [
      {
        say: "a client meets a single endpoint on one port",
        put: [
          service("web", {
            number: 1,
            spec: { ...withAffinity(600), ports: servicePorts({ name: "a", port: 80 }, { name: "b", port: 81 }) },
          }),
          service("api", { number: 2, spec: { ...withAffinity(600), ports: servicePorts({ name: "a", port: 80 }) } }),
          ...slices("web", ["pod-1-1"], "1", { ports: slicePorts(["a", "b"]) }),
          ...slices("api", THREE, "1", { ports: slicePorts(["a"]) }),
        ],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "a", port: 80 }),
      },
      {
        say: "others come",
        put: slices("web", THREE, "1", { ports: slicePorts(["a", "b"]) }),
        probes: [
          ...asks("client1", "web clusterIP", `${ALL} saw node1`, { port: 80, like: { kept: "a", goes: "same" } }),
          ...asks("client1", "web clusterIP", `${ALL} saw node1`, { port: 81, like: { kept: "a", goes: "free" } }),
          ...asks("client1", "api clusterIP", `${ALL} saw node1`, { port: 80, like: { kept: "a", goes: "free" } }),
        ],
      },
    ],
  },
  {
    name: "affinity doesn't lead a client out of the pool its packet is for",
    rules: ["R-46", "R-30"],
    subtleties: [14],
    steps: [
      {
        say: "a client meets an endpoint elsewhere",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { ...withAffinity(600), externalTrafficPolicy: "Local" } }),
          ...slices("web", ["pod-2-1"]),
        ],
        probes: asks("client1", "web clusterIP", "pod-2-1 saw node1", { keep: "elsewhere" }),
      },
      {
        say: "two come here",
        put: slices("web", THREE),
        probes: [
          ...asks("client1", "web clusterIP", `${ALL} saw node1`, { like: { kept: "elsewhere", goes: "same" } }),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 pod-1-2 saw client1", { like: { kept: "elsewhere", goes: "free" } }),
        ],
      },
    ],
  },
  {
    name: "an affine client under the Local policies stays with one endpoint here",
    rules: ["R-46", "R-30", "R-22"],
    subtleties: [14],
    steps: [
      {
        say: "clients meet a single endpoint here",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: { ...withAffinity(600), externalTrafficPolicy: "Local", internalTrafficPolicy: "Local" },
          }),
          ...slices("web", ["pod-1-1", "pod-2-1"]),
        ],
        probes: [
          ...asks("client1", "web loadBalancerIP", "pod-1-1 saw client1", { keep: "client" }),
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3", { keep: "pod" }),
        ],
      },
      {
        say: "another one comes here",
        put: slices("web", THREE),
        probes: [
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 pod-1-2 saw client1", { like: { kept: "client", goes: "same" } }),
          ...asks("client1", "web clusterIP", "pod-1-1 pod-1-2 saw node1", { like: { kept: "client", goes: "same" } }),
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 pod-1-2 saw pod-1-3", { like: { kept: "pod", goes: "same" } }),
          ...asks("pod-1-3", OUTSIDE_WAYS, `${ALL} saw pod-1-3`, { like: { kept: "pod", goes: "same" } }),
        ],
      },
    ],
  },
  {
    name: "a row with affinity is refused, dropped and forwarded as one without",
    rules: ["R-08", "R-23", "R-27", "R-33", "R-36"],
    steps: [
      {
        say: "policies Local, endpoints elsewhere",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: { ...withAffinity(600), externalTrafficPolicy: "Local", internalTrafficPolicy: "Local" },
          }),
          ...slices("web", ["pod-2-1"]),
        ],
        probes: [...asks("client1", EVERY_WAY, "dropped"), ...asksUnmasked("pod-1-3", OUTSIDE_WAYS, "pod-2-1")],
      },
      { say: "none", put: slices("web", []), probes: asks("client1 pod-1-3 node1", EVERY_WAY, "refused") },
      {
        say: "the client is an endpoint",
        put: slices("web", ["pod-1-1"]),
        probes: asks("pod-1-1", EVERY_WAY, "pod-1-1 saw node1"),
      },
    ],
  },
];
