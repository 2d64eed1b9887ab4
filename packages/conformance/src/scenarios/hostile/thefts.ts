import { rawNode, rawServiceCIDR } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../../runner/scenario.ts";
import { addressesOf, refs, service, servicePorts, slicePorts, slices } from "../../runner/short.ts";
import { STAGE_OBJECTS } from "../../runner/stage.ts";
import { asks, asksUnmasked, NODE1 } from "../probes.ts";

const OLD = "2024-01-01T00:00:00Z";
const NEW = "2024-02-01T00:00:00Z";
const SHARED = addressesOf(9, "externalIP");
const A = { ports: slicePorts(["a"]) };
const NODE_PORT_NUMBER = 30_009;
const AT_NODE_PORT = { port: NODE_PORT_NUMBER };
const NODE_PORT: RawObject = { type: "NodePort", ports: servicePorts({ name: "a", port: 80, nodePort: NODE_PORT_NUMBER }) };
const KUBERNETES = STAGE_OBJECTS.filter(({ kind }) => kind === "ServiceCIDR");
const NO_RANGES = { kind: "ServiceCIDR", namespace: "", name: "kubernetes" } as const;
const VICTIM = addressesOf(1, "clusterIP");
/** An older Service that calls the cluster IP of another one its own, in some way. */
const THIEF = service("thief", { number: 2, created: OLD, spec: { externalIPs: Object.values(VICTIM) } });
const AS_EVER = [
  ...asksUnmasked("pod-1-3", VICTIM, "pod-1-1", { port: 80 }),
  ...asks("client1", VICTIM, "pod-1-1 saw node1", { port: 80 }),
];
const WEB = [service("web", { number: 1, created: NEW }), ...slices("web", ["pod-1-1"])];
const ELSEWHERE = asks("client1 pod-1-3 node1", SHARED, "pod-1-1 saw node1", { port: 80 });
/** A load-balancer IP that is somebody's cluster IP. */
const BALANCED = {
  ...service("thief", { number: 2, created: OLD, spec: { type: "LoadBalancer" } }),
  status: { loadBalancer: { ingress: Object.values(VICTIM).map((ip) => ({ ip })) } },
};
const NODE1_PARTS = { zone: "zone-a", addresses: Object.values(NODE1), podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] };
/** An older Service that has the node's address and somebody's node port. */
const SQUATTER: RawObject = {
  externalIPs: Object.values(NODE1),
  ports: servicePorts({ name: "a", port: NODE_PORT_NUMBER }),
};

/** One Service reaches for what another one has by its kind, and is older. */
export const THEFTS: readonly Scenario[] = [
  {
    name: "an older Service can't take another one's cluster IP by calling it external, whether the service ranges are known or not",
    rules: ["R-53", "R-64"],
    steps: [
      { say: "a thief", put: [...WEB, THIEF, ...slices("thief", ["pod-1-2"])], probes: AS_EVER },
      { say: "the owner has no endpoints", put: slices("web", []), probes: asks("pod-1-3", VICTIM, "refused", { port: 80 }) },
      { say: "no ranges are known", put: slices("web", ["pod-1-1"]), remove: [NO_RANGES], probes: AS_EVER },
      { say: "the owner goes", remove: refs("web"), probes: asks("client1", VICTIM, "pod-1-2 saw node1", { port: 80 }) },
      { say: "it comes back", put: WEB, probes: AS_EVER },
    ],
  },
  {
    name: "an external IP in a service range is nobody's, from when the range is known until it goes",
    rules: ["R-64", "R-48"],
    steps: [
      {
        say: "nobody has the address",
        put: [THIEF, ...slices("thief", ["pod-1-2"])],
        probes: [...asks("client1 pod-1-3", VICTIM, "dropped", { port: 80 }), ...asksUnmasked("pod-1-3", "thief clusterIP", "pod-1-2")],
      },
      { say: "no ranges are known", remove: [NO_RANGES], probes: asks("client1 pod-1-3", VICTIM, "pod-1-2 saw node1", { port: 80 }) },
      { say: "they are known again", put: KUBERNETES, probes: asks("client1 pod-1-3", VICTIM, "dropped", { port: 80 }) },
      {
        say: "one more range, around another external IP",
        put: [service("web", { number: 1, spec: { externalIPs: Object.values(SHARED) } }), ...slices("web", ["pod-1-1"])],
        probes: ELSEWHERE,
      },
      {
        say: "it is known",
        put: [rawServiceCIDR("more", ["198.51.100.0/28", "fd00:198::/124"])],
        probes: [...asks("client1 pod-1-3", SHARED, "dropped", { port: 80 }), ...AS_EVER],
      },
      {
        say: "it goes",
        remove: [{ kind: "ServiceCIDR", namespace: "", name: "more" }],
        probes: [...ELSEWHERE, ...AS_EVER],
      },
    ],
  },
  {
    name: "a port that nobody defined on a cluster IP can't be had by an external IP",
    rules: ["R-64", "R-47"],
    steps: [
      {
        say: "a thief of another port",
        put: [
          ...WEB,
          service("thief", {
            number: 2,
            created: OLD,
            spec: { externalIPs: Object.values(VICTIM), ports: servicePorts({ name: "a", port: 81 }) },
          }),
          ...slices("thief", ["pod-1-2"], "1", A),
        ],
        probes: [...asks("client1 pod-1-3", VICTIM, "refused", { port: 81 }), ...AS_EVER],
      },
    ],
  },
  {
    name: "a cluster IP goes before an older load-balancer IP, and that before an older external IP",
    rules: ["R-53"],
    steps: [
      { say: "a load balancer's address that is a cluster IP", put: [BALANCED, ...slices("thief", ["pod-1-2"]), ...WEB], probes: AS_EVER },
      { say: "the owner goes", remove: refs("web"), probes: asks("client1", VICTIM, "pod-1-2 saw node1", { port: 80 }) },
      {
        say: "an old external IP meets a new load-balancer IP",
        put: [
          service("old", { number: 3, created: OLD, spec: { externalIPs: Object.values(addressesOf(9, "loadBalancerIP")) } }),
          ...slices("old", ["pod-1-1"]),
        ],
        probes: asks("client1", addressesOf(9, "loadBalancerIP"), "pod-1-1 saw node1", { port: 80 }),
      },
      {
        say: "which comes",
        put: [service("balanced", { number: 9, created: NEW, ways: ["loadBalancerIP"] }), ...slices("balanced", ["pod-2-1"])],
        probes: asks("client1", addressesOf(9, "loadBalancerIP"), "pod-2-1 saw node1", { port: 80 }),
      },
      {
        say: "and goes",
        remove: refs("balanced"),
        probes: asks("client1", addressesOf(9, "loadBalancerIP"), "pod-1-1 saw node1", { port: 80 }),
      },
    ],
  },
  {
    name: "a node port goes before an older external IP that is the node's address with that port",
    rules: ["R-65"],
    steps: [
      {
        say: "the node's address as an external IP, with a port that nobody has",
        put: [service("squatter", { number: 2, created: OLD, spec: SQUATTER }), ...slices("squatter", ["pod-1-2"], "1", A)],
        probes: asks("client1 pod-1-3", NODE1, "pod-1-2 saw node1", AT_NODE_PORT),
      },
      {
        say: "the port becomes somebody's node port",
        put: [service("web", { number: 1, created: NEW, spec: NODE_PORT }), ...slices("web", ["pod-1-1"], "1", A)],
        probes: asks("client1 pod-1-3", NODE1, "pod-1-1 saw node1", AT_NODE_PORT),
      },
      {
        say: "its endpoints go: still its own",
        put: slices("web", [], "1", A),
        probes: asks("client1 pod-1-3", NODE1, "refused", AT_NODE_PORT),
      },
      { say: "it goes", remove: refs("web"), probes: asks("client1 pod-1-3", NODE1, "pod-1-2 saw node1", AT_NODE_PORT) },
    ],
  },
  {
    name: "a node port goes before a load-balancer IP that becomes an address of the node",
    rules: ["R-65"],
    settings: { nodePortAddresses: ["all"] },
    hostAddresses: { IPv4: [SHARED.IPv4], IPv6: [SHARED.IPv6] },
    steps: [
      {
        say: "a load balancer's address, and elsewhere a node port of its number",
        put: [
          {
            ...service("balanced", { number: 2, created: OLD, spec: { type: "LoadBalancer", ports: SQUATTER["ports"] } }),
            status: { loadBalancer: { ingress: Object.values(SHARED).map((ip) => ({ ip })) } },
          },
          ...slices("balanced", ["pod-1-2"], "1", A),
          service("web", { number: 1, created: NEW, spec: NODE_PORT }),
          ...slices("web", ["pod-1-1"], "1", A),
        ],
        probes: [
          ...asks("client1", SHARED, "pod-1-2 saw node1", AT_NODE_PORT),
          ...asks("client1", NODE1, "pod-1-1 saw node1", AT_NODE_PORT),
        ],
      },
      {
        say: "the Node says that the address is its own",
        put: [rawNode("node1", { ...NODE1_PARTS, addresses: [...Object.values(NODE1), ...Object.values(SHARED)] })],
        probes: asks("client1", [SHARED, NODE1], "pod-1-1 saw node1", AT_NODE_PORT),
      },
      {
        say: "it no longer does",
        put: [rawNode("node1", NODE1_PARTS)],
        probes: asks("client1", SHARED, "pod-1-2 saw node1", AT_NODE_PORT),
      },
    ],
  },
];
