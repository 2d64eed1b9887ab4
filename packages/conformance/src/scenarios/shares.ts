import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { service, servicePorts, slices } from "../runner/short.ts";
import { asks } from "./probes.ts";

const THREE = ["pod-1-1", "pod-1-2", "pod-2-1"];
const FIVE = [...THREE, "pod-1-3", "pod-2-2"];
const AFFINE: RawObject = { sessionAffinity: "ClientIP" };

/** More ports than a statement, a batch or a page of a tool holds. */
const MANY = Array.from({ length: 1_100 }, (_, index) => ({ name: `p${index}`, port: 1_000 + index, protocols: ["TCP"] as const }));
const MANY_PORTS = MANY.map(({ name }) => ({ name: `${name}-tcp`, protocol: "TCP", port: 8080 }));
/** Some of them, at both ends and where batches end. */
const ASKED = [0, 1, 255, 256, 499, 500, 511, 512, 999, 1_000, 1_023, 1_024, 1_099].map((index) => 1_000 + index);

/** How much each endpoint gets, and how much there may be. */
export const SHARES: readonly Scenario[] = [
  {
    name: "every endpoint gets the same share of new connections",
    rules: ["R-68"],
    fakeOnly: "shares show in thousands of connections",
    steps: [
      {
        say: "three endpoints",
        put: [
          service("web", { number: 1, ways: ["nodePort"] }),
          service("api", { number: 2, spec: AFFINE }),
          ...["web", "api"].flatMap((name) => slices(name, THREE)),
        ],
        probes: [
          ...asks("client1", ["web clusterIP", "web nodePort@node1"], "pod-1-1 pod-1-2 pod-2-1 saw node1", { isEven: true }),
          ...asks("client1", "api clusterIP", "pod-1-1 pod-1-2 pod-2-1 saw node1", { isEven: true }),
        ],
      },
      {
        say: "five endpoints, three of them here, and the Local external policy",
        put: [service("web", { number: 1, ways: ["nodePort"], spec: { externalTrafficPolicy: "Local" } }), ...slices("web", FIVE)],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 pod-1-2 pod-1-3 pod-2-1 pod-2-2 saw node1", { isEven: true }),
          ...asks("client1", "web nodePort@node1", "pod-1-1 pod-1-2 pod-1-3 saw client1", { isEven: true }),
        ],
      },
    ],
  },
  {
    name: "a change of more than a thousand ports comes into force as a whole",
    rules: ["R-22", "R-58"],
    protocols: ["TCP"],
    fakeOnly: "a thousand servers are many",
    steps: [
      {
        say: "they come",
        put: [
          service("web", { number: 1, spec: { ports: servicePorts(...MANY) } }),
          ...slices("web", ["pod-1-1"], "1", { ports: MANY_PORTS }),
        ],
        probes: ASKED.flatMap((port) => asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3", { port })),
      },
      {
        say: "all of them move to another endpoint",
        put: slices("web", ["pod-2-1"], "1", { ports: MANY_PORTS }),
        probes: ASKED.flatMap((port) => asks("pod-1-3", "web clusterIP", "pod-2-1 saw pod-1-3", { port })),
      },
    ],
  },
];
