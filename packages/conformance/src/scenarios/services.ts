import type { RawObject } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, service, servicePorts, slicePorts, slices } from "../runner/short.ts";
import { EVERY_CLIENT, asks, asksUnmasked, EVERY_WAY, NODE1, nodePortOf } from "./probes.ts";

const WAYS = ["nodePort", "externalIP", "loadBalancerIP"] as const;
const WEB = service("web", { number: 1, ways: WAYS });
const EXTERNAL_NAME = service("web", {
  number: 1,
  spec: { type: "ExternalName", externalName: "example.org", clusterIP: "", clusterIPs: [], ipFamilies: [], ports: [] },
});
const FIRST = addressesOf(1, "clusterIP");
const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const;

/** An object with one label more. */
function withLabel(raw: RawObject, label: string, value: string): RawObject {
  const metadata = raw["metadata"] as { readonly labels?: RawObject };
  return { ...raw, metadata: { ...metadata, labels: { ...metadata.labels, [label]: value } } };
}

function labelled(label: string, value: string): RawObject {
  return withLabel(WEB, label, value);
}

/** Nothing of the Service with all ways is in force. */
const NOTHING = [
  ...asks(EVERY_CLIENT, FIRST, "dropped", { port: 80 }),
  ...asks("client1", [addressesOf(1, "externalIP"), addressesOf(1, "loadBalancerIP")], "untouched", { port: 80 }),
  ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) }),
];

/** Which Services have rows, and what of them counts. */
export const SERVICES: readonly Scenario[] = [
  {
    name: "an ExternalName Service has nothing, before and after it is something else",
    rules: ["R-02"],
    steps: [
      { say: "ExternalName, with endpoints", put: [EXTERNAL_NAME, ...slices("web", ["pod-1-1"])], probes: NOTHING },
      {
        say: "it becomes a ClusterIP Service",
        put: [service("web", { number: 1 })],
        probes: [...asksUnmasked("pod-1-3", "web clusterIP", "pod-1-1"), ...asks("client1", NODE1, "untouched", { port: nodePortOf(1) })],
      },
      { say: "and ExternalName again", put: [EXTERNAL_NAME], probes: NOTHING },
      {
        say: "it becomes a NodePort Service",
        put: [service("web", { number: 1, ways: ["nodePort"] })],
        probes: asks("client1", ["web clusterIP", "web nodePort@node1"], "pod-1-1 saw node1"),
      },
      { say: "and ExternalName again", put: [EXTERNAL_NAME], probes: NOTHING },
      {
        say: "with addresses left over",
        put: [service("web", { number: 1, ways: WAYS, spec: { type: "ExternalName", externalName: "example.org" } })],
        probes: NOTHING,
      },
      { say: "it becomes a LoadBalancer", put: [WEB], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
    ],
  },
  {
    name: "a headless Service has nothing, whatever other addresses it has",
    rules: ["R-01"],
    steps: [
      { say: "with a cluster IP", put: [WEB, ...slices("web", ["pod-1-1"])], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      {
        say: "the cluster IP becomes None",
        put: [service("web", { number: 1, ways: WAYS, spec: { clusterIP: "None", clusterIPs: ["None"] } })],
        probes: NOTHING,
      },
      {
        say: "it is empty",
        put: [service("web", { number: 1, ways: WAYS, spec: { clusterIP: "", clusterIPs: [] } })],
        probes: NOTHING,
      },
      { say: "it is back", put: [WEB], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
    ],
  },
  ...(["IPv4", "IPv6"] as const).map((family): Scenario => {
    const ip = FIRST[family];
    const one = { ipFamilies: [family], clusterIP: ip, clusterIPs: [ip] };
    return {
      name: `a Service of ${family} alone has nothing in the other family`,
      rules: ["R-03"],
      families: [family === "IPv4" ? "IPv6" : "IPv4"],
      steps: [
        {
          say: "external addresses of both families",
          put: [service("web", { number: 1, ways: WAYS, spec: one }), ...slices("web", ["pod-1-1"])],
          probes: NOTHING,
        },
        { say: "it becomes dual stack", put: [WEB], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
        { say: "and single stack again", put: [service("web", { number: 1, ways: WAYS, spec: one })], probes: NOTHING },
      ],
    };
  }),
  {
    name: "cluster IPs are of the families named in their order, or of their own",
    rules: ["R-03"],
    steps: [
      {
        say: "IPv6 first",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: { ipFamilies: ["IPv6", "IPv4"], clusterIP: FIRST.IPv6, clusterIPs: [FIRST.IPv6, FIRST.IPv4] },
          }),
          ...slices("web", ["pod-1-1"]),
        ],
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
      {
        say: "families not named",
        put: [service("web", { number: 1, ways: WAYS, spec: { ipFamilies: [] } })],
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
    ],
  },
  {
    name: "each port of a Service has endpoints of its own",
    rules: ["R-04", "R-12"],
    subtleties: [1],
    steps: [
      {
        say: "two ports, served by two pods under one number",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: { ports: servicePorts({ name: "a", port: 80, nodePort: 30_001 }, { name: "b", port: 81, nodePort: 30_002 }) },
          }),
          ...slices("web", ["pod-1-1"], "1", { ports: slicePorts(["a"]) }),
          ...slices("web", ["pod-1-2", "pod-2-1"], "2", { ports: slicePorts(["b"]) }),
        ],
        probes: [
          ...asks("client1", ["web clusterIP", "web externalIP", "web loadBalancerIP"], "pod-1-1 saw node1", { port: 80 }),
          ...asks("client1", ["web clusterIP", "web externalIP", "web loadBalancerIP"], "pod-1-2 pod-2-1 saw node1", { port: 81 }),
          ...asks("client1", NODE1, "pod-1-1 saw node1", { port: 30_001 }),
          ...asks("client1", NODE1, "pod-1-2 pod-2-1 saw node1", { port: 30_002 }),
        ],
      },
      {
        say: "their numbers change places",
        put: [
          service("web", {
            number: 1,
            ways: WAYS,
            spec: { ports: servicePorts({ name: "a", port: 81, nodePort: 30_002 }, { name: "b", port: 80, nodePort: 30_001 }) },
          }),
        ],
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { port: 81 }),
          ...asks("client1", "web clusterIP", "pod-1-2 pod-2-1 saw node1", { port: 80 }),
          ...asks("client1", NODE1, "pod-1-1 saw node1", { port: 30_002 }),
        ],
      },
      {
        say: "the second one has no endpoints",
        put: slices("web", [], "2", { ports: slicePorts(["b"]) }),
        probes: [
          ...asks("client1", "web clusterIP", "pod-1-1 saw node1", { port: 81 }),
          ...asks("client1", ["web clusterIP", "web externalIP"], "refused", { port: 80 }),
        ],
      },
    ],
  },
  {
    name: "one port name may stand for several protocols",
    rules: ["R-04", "R-12"],
    steps: [
      {
        say: "a service with one name for all",
        put: [
          service("web", { number: 1, spec: { ports: PROTOCOLS.map((protocol) => ({ name: "all", protocol, port: 80 })) } }),
          ...slices("web", ["pod-1-1"], "1", { ports: PROTOCOLS.map((protocol) => ({ name: "all", protocol, port: 8080 })) }),
        ],
        probes: asksUnmasked("pod-1-3", "web clusterIP", "pod-1-1"),
      },
      {
        say: "and with none",
        put: [
          service("web", { number: 1, spec: { ports: PROTOCOLS.map((protocol) => ({ protocol, port: 80 })) } }),
          ...slices("web", ["pod-1-2"], "1", { ports: PROTOCOLS.map((protocol) => ({ name: "", protocol, port: 8080 })) }),
        ],
        probes: asksUnmasked("pod-1-3", "web clusterIP", "pod-1-2"),
      },
    ],
  },
  {
    name: "a Service labelled for another proxy, and a slice labelled headless, are not seen, whatever the label's value",
    rules: ["R-63"],
    steps: [
      { say: "a service", put: [WEB, ...slices("web", ["pod-1-1"])], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      { say: "it is another proxy's", put: [labelled("service.kubernetes.io/service-proxy-name", "another")], probes: NOTHING },
      { say: "it is ours again", put: [WEB], probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1") },
      {
        say: "its slices are headless, by an empty label",
        put: slices("web", ["pod-1-1"]).map((slice) => withLabel(slice, "service.kubernetes.io/headless", "")),
        probes: asks(EVERY_CLIENT, EVERY_WAY, "refused"),
      },
      {
        say: "it has their label, and they have its: neither says anything there",
        put: [
          labelled("service.kubernetes.io/headless", ""),
          ...slices("web", ["pod-1-1"]).map((slice) => withLabel(slice, "service.kubernetes.io/service-proxy-name", "another")),
        ],
        probes: asks("client1", EVERY_WAY, "pod-1-1 saw node1"),
      },
    ],
  },
  ...PROTOCOLS.map((protocol, index): Scenario => ({
    name: `a port name that stands for several protocols has endpoints for each: ${protocol}`,
    rules: ["R-04", "R-12"],
    subtleties: [1],
    protocols: [protocol],
    steps: [
      {
        say: "each protocol is served by another pod",
        put: [
          service("web", { number: 1, spec: { ports: PROTOCOLS.map((one) => ({ name: "all", protocol: one, port: 80 })) } }),
          ...PROTOCOLS.flatMap((one, pod) =>
            slices("web", [`pod-1-${pod + 1}`], one.toLowerCase(), { ports: [{ name: "all", protocol: one, port: 8080 }] }),
          ),
        ],
        probes: asks("client1", "web clusterIP", `pod-1-${index + 1} saw node1`),
      },
    ],
  })),
];
