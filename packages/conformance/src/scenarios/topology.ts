import { rawNode } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import type { Scenario, Step } from "../runner/scenario.ts";
import { service, slices } from "../runner/short.ts";
import type { EndpointOn } from "../runner/short.ts";
import { asks, EVERY_WAY, OUTSIDE_WAYS } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const WEB = service("web", { number: 1, ways: WAYS });
const A = ["zone-a"];
const B = ["zone-b"];

/** node1 in a zone, or in none. */
function nodeIn(zone: string | undefined): RawObject {
  const rest = { addresses: ["172.18.0.1", "fd00:18::1"], podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] };
  return rawNode("node1", zone === undefined ? rest : { ...rest, zone });
}

/** A step in which the endpoints become these, and a pod and a client are sent to some of them. */
function hinted(say: string, endpoints: readonly (string | EndpointOn)[], servers: string): Step {
  return {
    say,
    put: slices("web", endpoints),
    probes: [...asks("pod-1-3", "web clusterIP", `${servers} saw pod-1-3`), ...asks("client1", EVERY_WAY, `${servers} saw node1`)],
  };
}

/** Topology hints: which endpoints a node in zone-a uses. */
export const TOPOLOGY: readonly Scenario[] = [
  {
    name: "endpoints hinted for this node's zone are preferred as long as all are hinted and one fits",
    rules: ["R-20", "R-16", "R-61"],
    subtleties: [8],
    steps: [
      {
        say: "a service without hints",
        put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
      },
      hinted(
        "one for each zone",
        [
          { on: "pod-1-1", zones: A },
          { on: "pod-2-1", zones: B },
        ],
        "pod-1-1",
      ),
      hinted(
        "the other node's is for this zone",
        [
          { on: "pod-1-1", zones: B },
          { on: "pod-2-1", zones: A },
        ],
        "pod-2-1",
      ),
      hinted("one without a hint", [{ on: "pod-1-1", zones: A }, { on: "pod-2-1", zones: B }, "pod-2-2"], "pod-1-1 pod-2-1 pod-2-2"),
      hinted(
        "an empty hint is none",
        [
          { on: "pod-1-1", zones: A },
          { on: "pod-2-1", zones: [] },
        ],
        "pod-1-1 pod-2-1",
      ),
      hinted(
        "none for this zone",
        [
          { on: "pod-1-1", zones: B },
          { on: "pod-2-1", zones: B },
        ],
        "pod-1-1 pod-2-1",
      ),
      hinted(
        "one for both zones",
        [
          { on: "pod-1-1", zones: [...A, ...B] },
          { on: "pod-2-1", zones: B },
          { on: "pod-2-2", zones: A },
        ],
        "pod-1-1 pod-2-2",
      ),
      hinted(
        "only ready ones are asked for hints",
        [
          { on: "pod-1-1", zones: A },
          { on: "pod-2-1", zones: B },
          { on: "pod-2-2", ready: false },
        ],
        "pod-1-1",
      ),
      hinted(
        "one that is not ready doesn't make the zone fit",
        [
          { on: "pod-1-1", ready: false, serving: false, zones: A },
          { on: "pod-2-1", zones: B },
        ],
        "pod-2-1",
      ),
    ],
  },
  {
    name: "endpoints hinted for this node are preferred, and where that fails zones decide",
    rules: ["R-19", "R-20"],
    subtleties: [8],
    steps: [
      { say: "a service", put: [WEB] },
      hinted(
        "one for each node",
        [
          { on: "pod-1-1", nodes: ["node1"] },
          { on: "pod-2-1", nodes: ["node2"] },
        ],
        "pod-1-1",
      ),
      hinted(
        "the other node's is for this node",
        [
          { on: "pod-1-1", nodes: ["node2"] },
          { on: "pod-2-1", nodes: ["node1"] },
        ],
        "pod-2-1",
      ),
      hinted(
        "the node wins over the zone",
        [
          { on: "pod-1-1", nodes: ["node1"], zones: B },
          { on: "pod-2-1", nodes: ["node2"], zones: A },
        ],
        "pod-1-1",
      ),
      hinted(
        "one without a node hint: zones decide",
        [
          { on: "pod-1-1", nodes: ["node1"], zones: B },
          { on: "pod-2-1", zones: A },
          { on: "pod-2-2", nodes: ["node2"], zones: A },
        ],
        "pod-2-1 pod-2-2",
      ),
      hinted(
        "none for this node: zones decide",
        [
          { on: "pod-1-1", nodes: ["node2"], zones: A },
          { on: "pod-2-1", nodes: ["node2"], zones: B },
        ],
        "pod-1-1",
      ),
      hinted(
        "none for this node, no zones",
        [
          { on: "pod-1-1", nodes: ["node2"] },
          { on: "pod-2-1", nodes: ["node2"] },
        ],
        "pod-1-1 pod-2-1",
      ),
      hinted(
        "the one on the node goes: the zone's",
        [
          { on: "pod-1-1", nodes: ["node1"], zones: A, ready: false, serving: false },
          { on: "pod-1-2", nodes: ["node3"], zones: A },
          { on: "pod-2-1", nodes: ["node2"], zones: B },
        ],
        "pod-1-2",
      ),
    ],
  },
  {
    name: "the zone of the node decides at the time",
    rules: ["R-20", "R-61"],
    steps: [
      {
        say: "one for each zone",
        put: [
          WEB,
          ...slices("web", [
            { on: "pod-1-1", zones: A },
            { on: "pod-2-1", zones: B },
          ]),
        ],
        probes: asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
      },
      { say: "the node moves to the other zone", put: [nodeIn("zone-b")], probes: asks("pod-1-3", "web clusterIP", "pod-2-1 saw pod-1-3") },
      {
        say: "to one nobody is hinted for",
        put: [nodeIn("zone-c")],
        probes: asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
      },
      { say: "it loses its zone", put: [nodeIn(undefined)], probes: asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3") },
      { say: "it is back", put: [nodeIn("zone-a")], probes: asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3") },
    ],
  },
  {
    name: "hints don't narrow what is local, nor does a local endpoint widen what hints say",
    rules: ["R-20", "R-22", "R-30", "R-31"],
    subtleties: [8],
    steps: [
      {
        say: "both policies Local, the endpoint here is for the other zone",
        put: [
          service("web", { number: 1, ways: WAYS, spec: { internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" } }),
          ...slices("web", [
            { on: "pod-1-1", zones: B },
            { on: "pod-2-1", zones: A },
          ]),
        ],
        probes: [
          ...asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
          ...asks("client1", OUTSIDE_WAYS, "pod-1-1 saw client1"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 saw pod-1-3"),
          ...asks("node1", OUTSIDE_WAYS, "pod-2-1 saw node1"),
        ],
      },
      {
        say: "no endpoint here, one for this zone",
        put: slices("web", [
          { on: "pod-2-1", zones: A },
          { on: "pod-2-2", zones: B },
        ]),
        probes: [
          ...asks("pod-1-3", "web clusterIP", "dropped"),
          ...asks("client1", OUTSIDE_WAYS, "dropped"),
          ...asks("pod-1-3", OUTSIDE_WAYS, "pod-2-1 saw pod-1-3"),
        ],
      },
    ],
  },
  {
    name: "what a Service says of its traffic distribution is not the proxy's business: hints are",
    rules: ["R-20"],
    subtleties: [8],
    steps: [
      {
        say: "PreferClose without hints",
        put: [service("web", { number: 1, spec: { trafficDistribution: "PreferClose" } }), ...slices("web", ["pod-1-1", "pod-2-1"])],
        probes: asks("pod-1-3", "web clusterIP", "pod-1-1 pod-2-1 saw pod-1-3"),
      },
      {
        say: "hints without it",
        put: [
          service("web", { number: 1 }),
          ...slices("web", [
            { on: "pod-1-1", zones: A },
            { on: "pod-2-1", zones: B },
          ]),
        ],
        probes: asks("pod-1-3", "web clusterIP", "pod-1-1 saw pod-1-3"),
      },
    ],
  },
];
