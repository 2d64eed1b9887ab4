import { serviceManifest, sliceManifests } from "@turnout/lab";
import type { EndpointManifest, ServiceManifest } from "@turnout/lab";
import type { IPFamily } from "@turnout/core";
import type { Site } from "../site.ts";
import type { Fault } from "./fault.ts";

/** A fault that is in the API objects: a Service of its own, and what is asked. */
interface ObjectFault extends Fault {
  readonly service?: Partial<ServiceManifest> & { readonly externalIPs?: readonly string[] };
  /** Endpoints by names of places; default a pod on each node. */
  readonly endpoints?: (site: Site) => readonly EndpointManifest[];
  /** Families of its slices; default both. */
  readonly families?: readonly IPFamily[];
  /** What is written otherwise than the laboratory does. */
  readonly edit?: (objects: readonly Record<string, unknown>[]) => readonly unknown[];
}

const PORT = 80;
/** The address of the n-th of these Services; those of the laboratory begin at 1. */
const clusterIP = (number: number): string => `10.96.1.${number}`;
const clusterIP6 = (number: number): string => `fd00:96::1${number.toString(16).padStart(3, "0")}`;
const external = (number: number): string => `192.0.2.${number}`;

type Spec = Record<string, unknown>;
const specOf = (object: Record<string, unknown> | undefined): Spec => (object?.["spec"] ?? {}) as Spec;
const both = (site: Site): readonly EndpointManifest[] => ["pod-1-1", "pod-2-1"].map((name) => ({ place: site.place(name) }));
const onlyRemote = (site: Site): readonly EndpointManifest[] => [{ place: site.place("pod-2-1") }];
const all = (site: Site): readonly EndpointManifest[] =>
  ["pod-1-1", "pod-1-2", "pod-1-3", "pod-2-1", "pod-2-2", "pod-2-3"].map((name) => ({ place: site.place(name) }));
const conditioned =
  (conditions: Partial<EndpointManifest>) =>
  (site: Site): readonly EndpointManifest[] =>
    both(site).map((endpoint) => ({ ...endpoint, ...conditions }));

const ask = (number: number, from = "pod-1-2"): Fault["ask"] => ({ from, to: clusterIP(number), port: PORT });
const fault = (number: number, name: string, culprits: Fault["culprits"], rest: Partial<ObjectFault> = {}): ObjectFault => ({
  name,
  culprits,
  ask: ask(number),
  ...rest,
});
const nodePort = 31_000;

/** Faults of API objects, in the order of their addresses. */
export function objectFaults(): readonly ObjectFault[] {
  return [...endpointFaults(), ...addressFaults(), ...refusedFaults(), ...otherFaults()];
}

function endpointFaults(): readonly ObjectFault[] {
  return [
    fault(1, "a Service without endpoints", ["no_endpoints"], { endpoints: () => [] }),
    fault(2, "no endpoint is ready", ["none_ready"], { endpoints: conditioned({ ready: false, serving: false }) }),
    fault(3, "all endpoints terminate and don't serve any more", ["none_ready"], {
      endpoints: conditioned({ ready: false, serving: false, terminating: true }),
    }),
    fault(4, "the slices' port has another name (named targetPort)", ["named_port"], {
      edit: ([service, ...slices]) => [
        service,
        ...slices.map((slice) => ({ ...slice, ports: [{ name: "web", protocol: "TCP", port: 8080 }] })),
      ],
    }),
    fault(5, "the slices' port has another protocol", ["named_port"], {
      edit: ([service, ...slices]) => [
        service,
        ...slices.map((slice) => ({ ...slice, ports: [{ name: "http", protocol: "UDP", port: 8080 }] })),
      ],
    }),
    fault(6, "pods of the other family only", ["family_missing"], { families: ["IPv6"] }),
    fault(7, "internalTrafficPolicy Local, endpoints elsewhere", ["local_policy"], {
      service: { internalTrafficPolicy: "Local" },
      endpoints: onlyRemote,
    }),
    fault(8, "externalTrafficPolicy Local, endpoints elsewhere", ["local_policy"], {
      ask: { from: "client1", to: external(8), port: PORT },
      service: { externalIPs: [external(8)], externalTrafficPolicy: "Local" },
      endpoints: onlyRemote,
    }),
    fault(9, "a client outside the source ranges", ["source_range"], {
      ask: { from: "client1", to: external(9), port: PORT },
      service: { ingress: [{ ip: external(9) }], sourceRanges: ["198.18.0.0/15"] },
    }),
  ];
}

function addressFaults(): readonly ObjectFault[] {
  return [
    fault(10, "the label service-proxy-name", ["hidden_label"], {
      service: { labels: { "service.kubernetes.io/service-proxy-name": "other" } },
    }),
    fault(11, "a load-balancer IP in ipMode Proxy", ["ip_mode_proxy"], {
      ask: { from: "client1", to: external(11), port: PORT },
      service: { ingress: [{ ip: external(11), ipMode: "Proxy" }] },
    }),
    fault(12, "two Services want one external IP", ["contested"], {
      ask: { from: "client1", to: external(12), port: PORT },
      service: { externalIPs: [external(12)] },
    }),
    fault(13, "the other of the two", ["contested", "lost_claim"], {
      ask: { from: "client1", to: external(12), port: PORT },
      service: { externalIPs: [external(12)] },
    }),
    fault(14, "an external IP in the service range", ["lost_claim"], {
      ask: { from: "pod-1-2", to: "10.96.9.9", port: PORT },
      service: { externalIPs: ["10.96.9.9"] },
    }),
    fault(15, "a port that the Service doesn't have", ["wrong_port"], { ask: { ...ask(15), port: 81 } }),
    fault(16, "the pods' port instead of the Service's", ["wrong_port"], { ask: { ...ask(16), port: 8080 } }),
    fault(17, "the port in another protocol", ["wrong_protocol"], { ask: { ...ask(17), protocol: "UDP" } }),
    fault(18, "the address of a Service that was deleted", ["unknown_address"], {
      ask: { from: "pod-1-2", to: "10.96.77.77", port: PORT },
    }),
  ];
}

function refusedFaults(): readonly ObjectFault[] {
  return [
    fault(19, "a node port on loopback", ["node_port_loopback"], {
      backends: ["nft", "ebpf"],
      ask: { from: "127.0.0.1", to: "127.0.0.1", port: nodePort + 19 },
      service: { ports: [{ name: "http", port: PORT, targetPort: 8080, nodePort: nodePort + 19 }] },
    }),
    fault(20, "a node port in another protocol", ["wrong_protocol"], {
      ask: { from: "client1", to: "172.18.0.1", port: nodePort + 20, protocol: "UDP" },
      service: { ports: [{ name: "http", port: PORT, targetPort: 8080, nodePort: nodePort + 20 }] },
    }),
    fault(21, "an external IP that is not allowed", ["not_allowed"], {
      ask: { from: "client1", to: external(221), port: PORT },
      service: { externalIPs: [external(221)] },
    }),
    fault(22, "endpoints at loopback addresses", ["refused_object"], {
      edit: ([service, ...slices]) => [
        service,
        ...slices.map((slice) => ({ ...slice, endpoints: [{ addresses: [slice["addressType"] === "IPv4" ? "127.0.0.1" : "::1"] }] })),
      ],
    }),
    fault(23, "a port with a name that is none", ["refused_object"], {
      edit: ([service, ...slices]) => [
        { ...service, spec: { ...specOf(service), ports: [{ name: "BAD;name", port: PORT, protocol: "TCP" }] } },
        ...slices,
      ],
    }),
    fault(24, "source ranges of which none can be read", ["refused_object"], {
      ask: { from: "client1", to: external(24), port: PORT },
      service: { ingress: [{ ip: external(24) }], sourceRanges: ["everybody"] },
    }),
    fault(25, "topology hints that don't apply", ["hints_ignored"], {
      endpoints: (site) => both(site).map((endpoint, index) => (index === 0 ? { ...endpoint, zoneHints: ["zone-a"] } : endpoint)),
    }),
    fault(26, "client and Service of different families", ["families_differ"], {
      ask: { from: "10.1.1.2", to: clusterIP6(26), port: PORT },
    }),
  ];
}

function otherFaults(): readonly ObjectFault[] {
  return [
    fault(27, "a Service that is too large", ["too_large"], {
      service: { externalIPs: Array.from({ length: 12 }, (_, index) => `192.0.2.${100 + index}`) },
      endpoints: all,
    }),
    fault(28, "slices that are labelled as of a headless Service", ["no_endpoints"], {
      edit: ([service, ...slices]) => [
        service,
        ...slices.map((slice) => ({
          ...slice,
          metadata: {
            ...(slice["metadata"] as object),
            labels: { "kubernetes.io/service-name": "fault-28", "service.kubernetes.io/headless": "" },
          },
        })),
      ],
    }),
    fault(29, "slices that name another Service", ["no_endpoints"], {
      edit: ([service, ...slices]) => [
        service,
        ...slices.map((slice) => ({
          ...slice,
          metadata: { ...(slice["metadata"] as object), labels: { "kubernetes.io/service-name": "somebody" } },
        })),
      ],
    }),
    fault(30, "a Service of IPv4 alone, asked for by an IPv6 address", ["unknown_address"], {
      ask: { from: "pod-1-2", to: clusterIP6(30), port: PORT },
      service: { clusterIPs: [clusterIP(30)] },
    }),
    fault(31, "hints for zones, and a node without its own", ["hints_ignored"], {
      endpoints: (site) => both(site).map((endpoint) => ({ ...endpoint, zoneHints: ["zone-z"] })),
    }),
    fault(32, "the pod that would serve is on this node, but the slices name another", ["local_policy"], {
      service: { internalTrafficPolicy: "Local" },
      endpoints: (site) => [{ place: site.place("pod-1-1"), nodeName: "node1.example.com" }],
    }),
    fault(33, "an endpoint that is another Service's cluster IP", ["service_endpoint"], {
      connections: "lost",
      families: ["IPv4"],
      edit: ([service, ...slices]) => [
        service,
        ...slices.map((slice) => ({ ...slice, endpoints: [{ addresses: [clusterIP(1).replace(".1.1", ".0.1")] }] })),
      ],
    }),
    fault(34, "nothing listens at an endpoint in the host's network", ["unanswered"], {
      connections: "lost",
      service: { ports: [{ name: "http", port: PORT, targetPort: 8099 }] },
      endpoints: (site) => [{ place: site.place("node1") }],
    }),
  ];
}

/** Write the objects of all faults. */
export async function applyObjects(site: Site): Promise<void> {
  const objects = objectFaults().flatMap((one, index) => {
    const number = index + 1;
    const { service = {}, endpoints = both, families = ["IPv4", "IPv6"], edit = (same) => same } = one;
    const manifest: ServiceManifest = {
      name: `fault-${number}`,
      clusterIPs: [clusterIP(number), clusterIP6(number)],
      ports: [{ name: "http", port: PORT, targetPort: 8080 }],
      ...service,
    };
    // One without an address of its own: nobody has it.
    if (number === 18) return [];
    return edit([serviceManifest(manifest), ...sliceManifests(manifest, endpoints(site), families)]);
  });
  const unread: ServiceManifest = {
    name: "deaf",
    clusterIPs: ["10.96.0.201", "fd00:96::201"],
    ports: [{ name: "http", port: PORT, targetPort: 9 }],
  };
  await site.api.apply([...objects, serviceManifest(unread), ...sliceManifests(unread, both(site), ["IPv4", "IPv6"])]);
}
