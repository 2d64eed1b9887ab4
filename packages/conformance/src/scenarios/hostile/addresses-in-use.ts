import type { Capability, Protocol } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../../runner/scenario.ts";
import { addressesOf, service, servicePorts, slicePorts, slices } from "../../runner/short.ts";
import { SERVER_PORT, stagePeer } from "../../runner/stage.ts";
import { asks, asksUnmasked } from "../probes.ts";

const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];
const OLD = "2024-01-01T00:00:00Z";
const NEW = "2024-02-01T00:00:00Z";
const A = { ports: slicePorts(["a"]) };
/** A pod of another node, and one of this node. */
const VICTIM = stagePeer("pod-2-1").addresses;
const NEIGHBOR = stagePeer("pod-1-1").addresses;
const AT_POD = { port: SERVER_PORT };
const WEB_IP = addressesOf(1, "clusterIP");

/** The same objects in a namespace, or under another name or time. */
function inNamespace(objects: readonly RawObject[], metadata: RawObject): readonly RawObject[] {
  return objects.map((object) => ({ ...object, metadata: { ...(object["metadata"] as RawObject), ...metadata } }));
}

/** A tenant's Service in its own namespace, with these external IPs and the port of pods. */
function thief(
  addresses: Readonly<Record<string, string>>,
  namespace = "evil",
  protocols: readonly Protocol[] = PROTOCOLS,
): readonly RawObject[] {
  const spec = { externalIPs: Object.values(addresses), ports: servicePorts({ name: "a", port: SERVER_PORT, protocols }) };
  return inNamespace([service("thief", { number: 2, created: NEW, spec }), ...slices("thief", ["pod-1-2"], "1", A)], { namespace });
}

const WEB = [service("web", { number: 1, created: OLD }), ...inNamespace(slices("web", ["pod-2-1"]), { creationTimestamp: OLD })];
/** Everybody who asks the victim's Service, or the pod itself, gets to the pod. */
const AS_EVER = [...asksUnmasked("pod-1-3", WEB_IP, "pod-2-1", { port: 80 }), ...asks("pod-1-3 node1", VICTIM, "untouched", AT_POD)];

/** Where Services' addresses are the host's own, an endpoint with such an address is the host itself. */
const OTHERS_ADDRESSES: readonly Capability[] = ["serviceEndpoints"];

/** What pods, nodes and API servers use can't be claimed as external IP. */
export const ADDRESSES_IN_USE: readonly Scenario[] = [
  {
    name: "an external IP can't be an endpoint of another namespace whose slice is older, whether it is ready or not",
    rules: ["R-73"],
    steps: [
      { say: "a tenant claims a pod's address and port", put: [...WEB, ...thief(VICTIM)], probes: AS_EVER },
      {
        say: "the pod is not ready",
        put: inNamespace(slices("web", [{ on: "pod-2-1", ready: false }]), { creationTimestamp: OLD }),
        probes: asks("pod-1-3", VICTIM, "untouched", AT_POD),
      },
      { say: "the proxy starts again", put: WEB, restart: true, probes: AS_EVER },
    ],
  },
  {
    name: "an external IP may be an endpoint of another namespace while the slice of that is younger",
    rules: ["R-73"],
    needs: OTHERS_ADDRESSES,
    steps: [
      {
        say: "the slice is made after the claim",
        put: [...WEB, ...thief(VICTIM), ...inNamespace(slices("web", ["pod-2-1"]), { creationTimestamp: "2024-03-01T00:00:00Z" })],
        probes: asks("client1 pod-1-3", VICTIM, "pod-1-2 saw node1", AT_POD),
      },
      { say: "it is the old one again", put: WEB, probes: AS_EVER },
    ],
  },
  {
    name: "an external IP may be an endpoint of its own namespace, and a port that no endpoint has",
    rules: ["R-73"],
    steps: [
      {
        say: "claimed in its own namespace",
        put: [...WEB, ...thief(VICTIM, "kit")],
        probes: asks("client1 pod-1-3", VICTIM, "pod-1-2 saw node1", AT_POD),
      },
      {
        say: "another port, of another namespace",
        put: inNamespace(
          [
            service("other", {
              number: 3,
              created: NEW,
              spec: { externalIPs: Object.values(VICTIM), ports: servicePorts({ name: "a", port: 81 }) },
            }),
            ...slices("other", ["pod-1-1"], "1", A),
          ],
          { namespace: "evil" },
        ),
        probes: asks("client1 pod-1-3", VICTIM, "pod-1-1 saw node1", { port: 81 }),
      },
    ],
  },
  {
    name: "of two Services that claim an endpoint's address, the one of its own namespace has it, however young",
    rules: ["R-73", "R-53"],
    steps: [
      {
        say: "a tenant claims it first",
        put: [...WEB, ...thief(VICTIM)],
        probes: asks("pod-1-3", VICTIM, "untouched", AT_POD),
      },
      {
        say: "its own namespace claims it",
        put: [
          service("own", {
            number: 3,
            created: "2024-03-01T00:00:00Z",
            spec: { externalIPs: Object.values(VICTIM), ports: servicePorts({ name: "a", port: SERVER_PORT }) },
          }),
          ...slices("own", ["pod-1-1"], "1", A),
        ],
        probes: asks("client1 pod-1-3", VICTIM, "pod-1-1 saw node1", AT_POD),
      },
    ],
  },
  {
    name: "an external IP can't be in the pod range of the node, and a load-balancer IP may be anything",
    rules: ["R-73"],
    steps: [
      {
        say: "no endpoint has the address",
        put: [...thief(NEIGHBOR)],
        probes: asks("pod-1-3", NEIGHBOR, "untouched", AT_POD),
      },
      {
        say: "it is a load balancer's",
        put: [
          {
            ...(thief({})[0] as RawObject),
            status: { loadBalancer: { ingress: Object.values(NEIGHBOR).map((ip) => ({ ip })) } },
          },
        ],
        probes: asks("client1 pod-1-3", NEIGHBOR, "pod-1-2 saw node1", AT_POD),
      },
    ],
  },
  {
    name: "an external IP can't be the address and port of an API server",
    rules: ["R-74"],
    steps: [
      {
        say: "claimed, in the API server's own namespace, and by an older Service",
        put: [service("kubernetes", { number: 1, created: NEW }), ...slices("kubernetes", ["node2"])].flatMap((object) =>
          inNamespace([object], { namespace: "default" }),
        ),
        probes: [],
      },
      {
        say: "a thief",
        put: [...inNamespace(thief(stagePeer("node2").addresses, "default", ["TCP"]), { creationTimestamp: OLD })],
        probes: [...asks("pod-1-3 node1", stagePeer("node2").addresses, "untouched", { ...AT_POD })],
      },
    ],
  },
  {
    name: "an endpoint that is another Service's external IP is asked as it is",
    rules: ["R-75"],
    needs: OTHERS_ADDRESSES,
    steps: [
      {
        say: "a Service of the same namespace has the address and port of another one's endpoint as external IP",
        put: [...WEB, ...thief(VICTIM, "kit")],
        probes: [
          ...asksUnmasked("pod-1-3", WEB_IP, "pod-2-1", { port: 80 }),
          ...asks("node1 client1", WEB_IP, "pod-2-1 saw node1", { port: 80 }),
          ...asks("pod-1-3 client1", VICTIM, "pod-1-2 saw node1", AT_POD),
        ],
      },
    ],
  },
];
