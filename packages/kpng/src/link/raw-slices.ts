import { familyOf, FAMILIES } from "@turnout/core";
import type { Endpoint, PortMapping, Service } from "../gen/kpng/localv1/localv1.ts";
import { addressesOf, PROTOCOLS, type RawObject } from "./raw-service.ts";

/** An endpoint of a Service, whichever protocol told it. */
export interface KpngEndpoint {
  readonly endpoint: Endpoint;
  readonly isReady: boolean;
  readonly nodeName: string | undefined;
  /** Empty for no hint. */
  readonly zones: readonly string[];
  readonly podName: string | undefined;
}

interface RawSlicePort {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
}

/**
 * Find the number an endpoint listens on for a port, as kpng's own clients do; undefined when it doesn't.
 *
 * Edges: an endpoint that says no numbers at all is of a server from before there were any: the port's own one counts.
 * @source kpng api/localv1 PortMapping; docs/kpng.md
 */
export function targetPort({ Name, TargetPortName, TargetPort }: PortMapping, { PortOverrides }: Endpoint): number | undefined {
  const name = Name === "" ? TargetPortName : Name;
  const own = TargetPort === 0 ? undefined : TargetPort;
  if (PortOverrides.length === 0) return own;
  const named = PortOverrides.find((override) => override.Name === name)?.Port;
  return name === "" ? (own ?? named) : named;
}

/**
 * Write the endpoints of a Service as the EndpointSlices they might have come from: one for each family and set of numbers.
 *
 * Shape: `endpoints` in any order, each any number of times; slices are named by their place, in an order of their content.
 */
export function rawSlicesOf(service: Service, endpoints: Iterable<KpngEndpoint>): readonly RawObject[] {
  const slices = new Map<string, { ports: readonly RawSlicePort[]; addressType: string; endpoints: Map<string, RawObject> }>();
  for (const one of endpoints) {
    const ports = portsOf(service, one.endpoint);
    if (ports.length === 0) continue;
    for (const family of FAMILIES) {
      const id = `${family} ${JSON.stringify(ports)}`;
      for (const ip of addressesOf(one.endpoint.IPs)) {
        if (familyOf(ip) !== family) continue;
        const slice = slices.get(id) ?? { ports, addressType: family, endpoints: new Map<string, RawObject>() };
        slices.set(id, slice);
        const raw = rawEndpoint(ip, one);
        slice.endpoints.set(JSON.stringify(raw), raw);
      }
    }
  }
  const { Namespace: namespace, Name: name } = service;
  return [...slices]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, slice], index) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { namespace, name: `kpng-${index}-${name}`, labels: { "kubernetes.io/service-name": name } },
      addressType: slice.addressType,
      ports: slice.ports,
      endpoints: [...slice.endpoints.values()],
    }));
}

function portsOf({ Ports: mappings }: Service, endpoint: Endpoint): readonly RawSlicePort[] {
  return mappings.flatMap((mapping) => {
    const port = targetPort(mapping, endpoint);
    return port === undefined ? [] : [{ name: mapping.Name, protocol: PROTOCOLS[mapping.Protocol] ?? "", port }];
  });
}

function rawEndpoint(ip: string, { isReady, nodeName, zones, podName }: KpngEndpoint): RawObject {
  return {
    addresses: [ip],
    conditions: { ready: isReady, serving: isReady, terminating: false },
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(podName === undefined ? {} : { targetRef: { kind: "Pod", name: podName } }),
    ...(zones.length === 0 ? {} : { hints: { forZones: zones.map((name) => ({ name })) } }),
  };
}
