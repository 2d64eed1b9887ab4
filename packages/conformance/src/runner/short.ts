import type { IPFamily, Protocol } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import type { ObjectRef } from "./scenario.ts";
import { SERVER_PORT, stagePeer } from "./stage.ts";

const NAMESPACE = "kit";
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const;

/** The port of every Service made here, for all three protocols. */
export const SERVICE_PORT = 80;

/** A Service in short. */
export interface ServiceShort {
  /** 1–99, unique within a scenario: makes its addresses and node port. */
  readonly number: number;
  /** Ways besides the cluster IP; default none. */
  readonly ways?: readonly ("nodePort" | "externalIP" | "loadBalancerIP")[];
  /** Fields that replace those of the spec, as the API has them. */
  readonly spec?: RawObject;
  readonly labels?: Readonly<Record<string, string>>;
  /** metadata.creationTimestamp; default 2024-01-01T00:00:00Z. */
  readonly created?: string;
  /** ipMode of its load-balancer addresses; absent by default. */
  readonly ipMode?: "VIP" | "Proxy";
}

/** The addresses a Service of a number has, by way. Its node ports are 30000 + number for all protocols. */
export function addressesOf(number: number, way: "clusterIP" | "externalIP" | "loadBalancerIP"): Readonly<Record<IPFamily, string>> {
  const host = way === "loadBalancerIP" ? 100 + number : number;
  const hex = host.toString(16);
  return way === "clusterIP"
    ? { IPv4: `10.96.0.${host}`, IPv6: `fd00:96::${hex}` }
    : { IPv4: `198.51.100.${host}`, IPv6: `fd00:198::${hex}` };
}

/** Write a dual-stack v1 Service for TCP, UDP and SCTP on {@link SERVICE_PORT}; its ports are named `tcp`, `udp`, `sctp`. */
export function service(name: string, short: ServiceShort): RawObject {
  const { number, ways = [], spec = {}, labels, created = "2024-01-01T00:00:00Z", ipMode } = short;
  const both = (way: "clusterIP" | "externalIP" | "loadBalancerIP"): readonly string[] =>
    FAMILIES.map((family) => addressesOf(number, way)[family]);
  const hasNodePort = ways.includes("nodePort");
  const isBalanced = ways.includes("loadBalancerIP");
  const clusterIPs = both("clusterIP");
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: NAMESPACE, name, creationTimestamp: created, ...(labels === undefined ? {} : { labels }) },
    spec: {
      type: isBalanced ? "LoadBalancer" : hasNodePort ? "NodePort" : "ClusterIP",
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: FAMILIES,
      ports: PROTOCOLS.map((protocol) => ({
        name: protocol.toLowerCase(),
        protocol,
        port: SERVICE_PORT,
        targetPort: SERVER_PORT,
        ...(hasNodePort ? { nodePort: 30_000 + number } : {}),
      })),
      ...(ways.includes("externalIP") ? { externalIPs: both("externalIP") } : {}),
      ...spec,
    },
    ...(isBalanced
      ? { status: { loadBalancer: { ingress: both("loadBalancerIP").map((ip) => ({ ip, ...(ipMode === undefined ? {} : { ipMode }) })) } } }
      : {}),
  };
}

/** An endpoint on the stage; conditions left out are left out of the object. */
export interface EndpointOn {
  /** Name of the place that serves. */
  readonly on: string;
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
  /** nodeName instead of that of the place. */
  readonly nodeName?: string;
  /** No nodeName, as in slices that people or other controllers write. */
  readonly isNodeUnknown?: boolean;
  readonly zones?: readonly string[];
  readonly nodes?: readonly string[];
}

/** A port of a Service and its slices that isn't the usual one. */
export interface PortShort {
  /** Its ports are named `<name>-tcp`, `<name>-udp`, `<name>-sctp`. */
  readonly name: string;
  readonly port: number;
  readonly nodePort?: number;
  /** Default all three. */
  readonly protocols?: readonly Protocol[];
}

/** Write the ports of a Service: for `spec.ports`. */
export function servicePorts(...ports: readonly PortShort[]): readonly RawObject[] {
  return ports.flatMap(({ name, port, nodePort, protocols = PROTOCOLS }) =>
    protocols.map((protocol) => ({
      name: portName(name, protocol),
      protocol,
      port,
      targetPort: SERVER_PORT,
      ...(nodePort === undefined ? {} : { nodePort }),
    })),
  );
}

/** Write the ports of a slice for those of a Service, all served on one number; names as in {@link PortShort}. */
export function slicePorts(names: readonly string[], port: number = SERVER_PORT): readonly RawObject[] {
  return names.flatMap((name) => PROTOCOLS.map((protocol) => ({ name: portName(name, protocol), protocol, port })));
}

/** Write the EndpointSlices of a Service, one a family; `suffix` tells several pairs of one Service apart, `fields` replace those of the slices. */
export function slices(
  name: string,
  endpoints: readonly (string | EndpointOn)[],
  suffix: string = "1",
  fields: RawObject = {},
): readonly RawObject[] {
  return FAMILIES.map((family) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { namespace: NAMESPACE, name: sliceName(name, family, suffix), labels: { "kubernetes.io/service-name": name } },
    addressType: family,
    ports: PROTOCOLS.map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: SERVER_PORT })),
    endpoints: endpoints.map((endpoint) => endpointObject(typeof endpoint === "string" ? { on: endpoint } : endpoint, family)),
    ...fields,
  }));
}

/** Name a Service and its slices, for removal. */
export function refs(name: string, suffix: string = "1"): readonly ObjectRef[] {
  return [{ kind: "Service", namespace: NAMESPACE, name }, ...sliceRefs(name, suffix)];
}

/** Name the slices of a Service, for removal. */
export function sliceRefs(name: string, suffix: string = "1"): readonly ObjectRef[] {
  return FAMILIES.map((family) => ({ kind: "EndpointSlice", namespace: NAMESPACE, name: sliceName(name, family, suffix) }));
}

function portName(name: string, protocol: Protocol): string {
  return `${name}-${protocol.toLowerCase()}`;
}

function sliceName(name: string, family: IPFamily, suffix: string): string {
  return `${name}-${family.toLowerCase()}-${suffix}`;
}

function endpointObject({ on, zones, nodes, nodeName, isNodeUnknown = false, ...conditions }: EndpointOn, family: IPFamily): RawObject {
  const place = stagePeer(on);
  const node = isNodeUnknown ? undefined : (nodeName ?? place.node);
  const hints = {
    ...(zones === undefined ? {} : { forZones: zones.map((name) => ({ name })) }),
    ...(nodes === undefined ? {} : { forNodes: nodes.map((name) => ({ name })) }),
  };
  return {
    addresses: [place.addresses[family]],
    conditions,
    ...(node === undefined ? {} : { nodeName: node }),
    ...(Object.keys(hints).length === 0 ? {} : { hints }),
  };
}
