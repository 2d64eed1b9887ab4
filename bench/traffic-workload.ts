import { RANGES, serviceCIDRManifest, serviceManifest, sliceManifests } from "@turnout/lab";
import type { EndpointManifest, PortManifest, ServiceManifest } from "@turnout/lab";
import type { IPFamily } from "@turnout/core";
import { shapeText } from "./workload.ts";
import type { Shape } from "./workload.ts";

/** Both, primary first. */
export const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** What Services are asked; `plain` ones have neither affinity nor source ranges. */
export const ASKED_KINDS = ["plain", "sticky", "ranged"] as const;

/** One of {@link ASKED_KINDS}. */
export type AskedKind = (typeof ASKED_KINDS)[number];

/** Ports of a destination. */
export interface TrafficPorts {
  readonly tcp: number;
  readonly udp: number;
}

/** Ports of endpoints. */
export const TARGET_PORTS: TrafficPorts = { tcp: 8080, udp: 8080 };
/** Ports of Services. */
export const SERVICE_PORTS: TrafficPorts = { tcp: 80, udp: 80 };

/** One Service of the workload; `asked` of those that clients ask, with their number among those of their kind. */
export interface TrafficService {
  readonly index: number;
  readonly asked: { readonly kind: AskedKind; readonly number: number } | undefined;
}

/**
 * So many of each kind are asked in turn. kube-proxy's iptables mode writes Services in another order each time and a packet passes those before its own, so
 * one Service would say more about its place than about the mode.
 */
const ASKED_MAX = 32;
/** Addresses of the range of the laboratory. */
const SERVICES_MAX = 65_000;
const NODE_PORT_BASE = 30_000;
const NAMESPACE = "bench";
const AFFINITY_SECONDS = 10_800;

/** The Services of a workload: as many as the shape says, at least one of each kind that is asked. Those that are asked are spread evenly. Pure. @throws {RangeError} when the laboratory has too few addresses. */
export function trafficServices(shape: Pick<Shape, "services" | "endpoints">): readonly TrafficService[] {
  if (shape.services > SERVICES_MAX)
    throw new RangeError(`${shapeText(shape)} is too much for traffic: at most ${SERVICES_MAX} Services have addresses`);
  const kinds = ASKED_KINDS.length;
  const each = Math.min(ASKED_MAX, Math.max(1, Math.floor(shape.services / kinds)));
  const total = Math.max(shape.services, kinds * each);
  const stride = Math.floor(total / (kinds * each));
  return Array.from({ length: total }, (_, index) => {
    const place = index / stride;
    const kind = Number.isInteger(place) && place < kinds * each ? ASKED_KINDS[place % kinds] : undefined;
    return { index, asked: kind && { kind, number: Math.floor(place / kinds) } };
  });
}

/** The objects of Services with these endpoints, and the range of their addresses. Both families. Pure, one after another, so that the caller need not keep all. */
export function* trafficObjects(
  services: readonly TrafficService[],
  endpoints: readonly EndpointManifest[],
): Generator<Record<string, unknown>> {
  yield serviceCIDRManifest(FAMILIES.map((family) => RANGES.services[family]));
  for (const service of services) {
    const manifest = manifestOf(service);
    yield serviceManifest(manifest);
    yield* sliceManifests(manifest, endpoints, FAMILIES);
  }
}

function manifestOf({ index, asked }: TrafficService): ServiceManifest {
  const service = {
    namespace: NAMESPACE,
    name: `svc-${index}`,
    clusterIPs: FAMILIES.map((family) => clusterIP({ index }, family)),
    ports: [{ name: "tcp", port: SERVICE_PORTS.tcp, targetPort: TARGET_PORTS.tcp }],
  };
  if (asked === undefined) return service;
  if (asked.kind === "ranged") {
    const ingress = FAMILIES.map((family) => ({ ip: balancedIP({ asked }, family) }));
    return { ...service, ports: askedPorts(), ingress, sourceRanges: FAMILIES.flatMap((family) => SOURCE_RANGES[family]) };
  }
  const ports = askedPorts(nodePorts({ asked }));
  return asked.kind === "sticky" ? { ...service, ports, affinitySeconds: AFFINITY_SECONDS } : { ...service, ports };
}

/** Clients outside are in the last of them. */
const SOURCE_RANGES: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["192.0.2.0/24", "198.18.0.0/15", "172.20.0.0/14", RANGES.clients.IPv4],
  IPv6: ["fd00:301::/64", "fd00:302::/48", "fd00:303::1/128", RANGES.clients.IPv6],
};

function askedPorts(nodePort?: TrafficPorts): readonly PortManifest[] {
  const at = (name: keyof TrafficPorts): PortManifest => ({
    name,
    protocol: name === "tcp" ? "TCP" : "UDP",
    port: SERVICE_PORTS[name],
    targetPort: TARGET_PORTS[name],
    ...(nodePort === undefined ? {} : { nodePort: nodePort[name] }),
  });
  return [at("tcp"), at("udp")];
}

/** Address of an endpoint, from 0; every Service has the same endpoints. */
export function endpointAddress(number: number, family: IPFamily): string {
  const host = 100 + number;
  return family === "IPv4" ? `10.1.1.${host}` : `fd00:1:1::${host.toString(16)}`;
}

/** Cluster IP of a Service. */
export function clusterIP({ index }: Pick<TrafficService, "index">, family: IPFamily): string {
  const number = index + 1;
  return family === "IPv4" ? `10.96.${number >> 8}.${number & 255}` : `fd00:96::${number.toString(16)}`;
}

/** Load-balancer IP of a Service with source ranges. */
export function balancedIP({ asked }: Pick<TrafficService, "asked">, family: IPFamily): string {
  const number = (asked?.number ?? 0) + 1;
  return family === "IPv4" ? `198.51.100.${number}` : `fd00:198::${number.toString(16)}`;
}

/** Node ports of a Service that is asked, if its kind has some. */
export function nodePorts({ asked }: Pick<TrafficService, "asked">): TrafficPorts {
  const place = (asked?.number ?? 0) * ASKED_KINDS.length + ASKED_KINDS.indexOf(asked?.kind ?? "plain");
  return { tcp: NODE_PORT_BASE + place, udp: NODE_PORT_BASE + place };
}
