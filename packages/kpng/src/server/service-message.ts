import type * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { familyOf, type IPFamily, type Protocol } from "@turnout/core";

/** One port of a Service, as kpng says it. */
export interface PortShape {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  /** 0 for none. */
  readonly nodePort: number;
  /** The numbers its endpoints listen on. */
  readonly targets: ReadonlySet<number>;
}

/** What kpng's message says of a Service; both families. */
export interface ServiceShape {
  readonly namespace: string;
  readonly name: string;
  readonly clusterIPs: readonly string[];
  readonly externalIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
  /** Allowed sources of the load-balancer IPs, by family; none: any. */
  readonly sourceRanges: Readonly<Record<IPFamily, readonly string[]>>;
  readonly ports: readonly PortShape[];
  readonly affinitySeconds: number | undefined;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
  /** 0 for none. */
  readonly healthCheckPort: number;
}

const PROTOCOLS: Readonly<Record<Protocol, localv1.Protocol>> = { TCP: 1, UDP: 2, SCTP: 3 };

/** Sort addresses of both families into a set. */
export function ipSet(addresses: Iterable<string>): localv1.IPSet {
  const sorted = [...new Set(addresses)].sort();
  return { V4: sorted.filter((ip) => familyOf(ip) === "IPv4"), V6: sorted.filter((ip) => familyOf(ip) === "IPv6") };
}

/**
 * Give the name under which a port's number is found in an endpoint's PortOverrides.
 *
 * Edges: a port without a name is found by TargetPort alone, which is one number for all endpoints; where that does not do, by a
 * made-up TargetPortName.
 */
export function overrideName(port: PortShape, ports: readonly PortShape[]): string {
  if (port.name !== "") return port.name;
  const isStandalone = ports.filter(({ name }) => name === "").length === 1;
  return isStandalone && port.targets.size <= 1 ? "" : `unnamed-${port.protocol.toLowerCase()}`;
}

/** Encode a Service. No field is left out that a Go client would follow as a pointer. */
export function serviceMessage(shape: ServiceShape): localv1.Service {
  const { affinitySeconds } = shape;
  return {
    Namespace: shape.namespace,
    Name: shape.name,
    Type: typeOf(shape),
    IPs: {
      ClusterIPs: ipSet(shape.clusterIPs),
      ExternalIPs: ipSet(shape.externalIPs),
      Headless: false,
      LoadBalancerIPs: ipSet(shape.loadBalancerIPs),
    },
    MapIP: false,
    Ports: shape.ports.map((port) => portMapping(port, shape.ports)),
    ExternalTrafficToLocal: shape.externalLocal,
    Labels: new Map(),
    Annotations: new Map(),
    IPFilters: filtersOf(shape),
    SessionAffinity: affinitySeconds === undefined ? undefined : { $case: "ClientIP", value: { TimeoutSeconds: affinitySeconds } },
    InternalTrafficToLocal: shape.internalLocal,
    HealthCheckNodePort: shape.healthCheckPort,
  };
}

/** The model has no type, because nothing hangs on it; what a Service has says which one it must be. */
function typeOf({ loadBalancerIPs, externalIPs, healthCheckPort, externalLocal, ports }: ServiceShape): string {
  const hasNodePort = ports.some(({ nodePort }) => nodePort !== 0);
  if (loadBalancerIPs.length > 0 || healthCheckPort !== 0) return "LoadBalancer";
  if (hasNodePort) return "NodePort";
  // Only a load balancer that has nothing yet has a policy without an address it is for.
  return externalLocal && externalIPs.length === 0 ? "LoadBalancer" : "ClusterIP";
}

function portMapping(port: PortShape, ports: readonly PortShape[]): localv1.PortMapping {
  const byName = overrideName(port, ports);
  const [only] = port.targets;
  return {
    Name: port.name,
    Protocol: PROTOCOLS[port.protocol],
    Port: port.port,
    NodePort: port.nodePort,
    TargetPort: port.targets.size === 1 ? (only ?? 0) : 0,
    TargetPortName: port.name === "" ? byName : "",
  };
}

/** One filter for each family that has ranges, and so addresses they are for, which kpng's own server leaves to be guessed. */
function filtersOf({ loadBalancerIPs, sourceRanges }: ServiceShape): localv1.IPFilter[] {
  return (["IPv4", "IPv6"] as const).flatMap((family) => {
    const targets = loadBalancerIPs.filter((ip) => familyOf(ip) === family);
    const ranges = sourceRanges[family];
    return ranges.length === 0 ? [] : [{ TargetIPs: ipSet(targets), SourceRanges: [...ranges].sort() }];
  });
}
