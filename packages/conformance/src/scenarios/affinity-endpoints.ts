import type { Scenario } from "../runner/scenario.ts";
import { slices } from "../runner/short.ts";
import { AFFINE } from "./affinity.ts";
import { asks, EVERY_WAY } from "./probes.ts";

/** Clients that stay with their endpoint, until it goes. */
export const AFFINITY_ENDPOINTS: readonly Scenario[] = [
  {
    name: "affinity lets go of an endpoint that goes",
    rules: ["R-46"],
    steps: [
      {
        say: "a client and a pod meet a single endpoint",
        put: [AFFINE, ...slices("web", ["pod-1-1"])],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "first" }),
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3", { keep: "pod" }),
        ],
      },
      {
        say: "it leaves, others are ready",
        put: slices("web", [{ on: "pod-1-1", ready: false, serving: true, terminating: true }, "pod-1-2", "pod-2-1"]),
        probes: [
          ...asks("client1", EVERY_WAY, "pod-1-2 pod-2-1 saw node1", { like: { kept: "first", goes: "free" } }),
          ...asks("pod-1-3", "web clusterIP", "pod-1-2 pod-2-1 saw pod-1-3", { like: { kept: "pod", goes: "free" } }),
        ],
      },
      {
        say: "it is gone",
        put: slices("web", ["pod-1-2", "pod-2-1"]),
        probes: [
          ...asks("client1", EVERY_WAY, "pod-1-2 pod-2-1 saw node1", { like: { kept: "first", goes: "free" } }),
          ...asks("pod-1-3", "web clusterIP", "pod-1-2 pod-2-1 saw pod-1-3", { like: { kept: "pod", goes: "free" } }),
        ],
      },
    ],
  },
  {
    name: "a client that was sent elsewhere is not sent back when its first endpoint returns",
    rules: ["R-46"],
    subtleties: [14],
    steps: [
      {
        say: "a client meets a single endpoint",
        put: [AFFINE, ...slices("web", ["pod-1-1"])],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "first" }),
      },
      {
        say: "another one takes its place; the client comes",
        put: slices("web", ["pod-2-1"]),
        probes: asks("client1", "web clusterIP", "pod-2-1 saw node1", { keep: "second" }),
      },
      {
        say: "the first one is back",
        put: slices("web", ["pod-1-1", "pod-2-1"]),
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1", { like: { kept: "second", goes: "same" } }),
      },
    ],
  },
  {
    name: "a client whose endpoint goes while no proxy runs is not sent back when it returns",
    rules: ["R-46", "R-58"],
    subtleties: [14],
    fakeOnly: "the laboratory changes nothing while the command is down",
    steps: [
      {
        say: "a client meets a single endpoint",
        put: [AFFINE, ...slices("web", ["pod-1-1"])],
        probes: asks("client1", "web clusterIP", "pod-1-1 saw node1", { keep: "first" }),
      },
      {
        say: "the proxy ends, another endpoint takes its place, a new proxy starts; the client comes",
        restart: "amid changes",
        put: slices("web", ["pod-2-1"]),
        probes: asks("client1", "web clusterIP", "pod-2-1 saw node1", { keep: "second" }),
      },
      {
        say: "the first one is back",
        put: slices("web", ["pod-1-1", "pod-2-1"]),
        probes: asks("client1", EVERY_WAY, "pod-1-1 pod-2-1 saw node1", { like: { kept: "second", goes: "same" } }),
      },
    ],
  },
];
