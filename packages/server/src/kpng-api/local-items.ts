import { localv1 } from "@turnout/client/protocol";
import type { DestinationKind, IPFamily, ServicePort } from "@turnout/core";
import { joinFamilies, type Draft } from "./join-families.ts";
import { makeItem, type Item } from "./kpng-item.ts";
import { ipSet, overrideName, serviceMessage, type PortShape, type ServiceShape } from "./service-message.ts";
import { xxh64 } from "./xxh64.ts";

/** Numbers by the names under which kpng's clients look for them. */
type Ports = readonly localv1.PortName[];

/** An address of a Service on this node: which traffic it is for, and where it listens. */
interface LocalDraft extends Draft {
  readonly isLocal: boolean;
  readonly scopes: localv1.EndpointScopes;
  readonly ports: Ports;
}

/**
 * Say what one Service is on one node: the Service, and the endpoints that some traffic goes to.
 *
 * Shape: `rows` are those of the Service, not empty, of both families; `podOf` gives the pod an address is of.
 * Edges: which endpoints those are is what the rows' pools say, so topology, policies and the fallback to terminating endpoints are in it.
 * An address or node port that an older Service has is left out where the Service has it on no port at all.
 */
export function localItems(rows: readonly ServicePort[], podOf: (ip: string) => string | undefined): readonly Item[] {
  const sorted = rows.toSorted((a, b) => (a.key === b.key ? (a.family < b.family ? -1 : 1) : a.key < b.key ? -1 : 1));
  const shape = shapeOf(sorted);
  if (shape === undefined) return [];
  const path = `${shape.namespace}/${shape.name}`;
  const service = makeItem("service", localv1.Set.ServicesSet, path, localv1.Service.encode(serviceMessage(shape)).finish());
  const endpoints = joinFamilies(draftsOf(sorted, shape.ports, podOf)).map(({ ips, draft, podName }): Item => {
    const { isLocal, ports, scopes } = draft;
    const message = localv1.Endpoint.encode({
      Hostname: "",
      IPs: ipSet(ips),
      Local: isLocal,
      PortOverrides: [...ports],
      Scopes: scopes,
    }).finish();
    if (podName !== undefined) return makeItem("pod", localv1.Set.EndpointsSet, `${path}/${podName}`, message);
    return makeItem("anonymous", localv1.Set.EndpointsSet, `${path}/${xxh64(message).toString(16)}`, message);
  });
  return [service, ...endpoints];
}

function addressesOf(rows: readonly ServicePort[], kind: DestinationKind): readonly string[] {
  return rows.flatMap(({ destinations }) => destinations.filter((one) => one.kind === kind).map(({ address }) => address));
}

/** Undefined when nothing is left that kpng could say. */
function shapeOf(rows: readonly ServicePort[]): ServiceShape | undefined {
  const [first] = rows;
  const ports = portsOf(rows);
  if (first === undefined || ports.length === 0) return undefined;
  const { affinitySeconds, internalLocal, externalLocal, healthCheck } = first;
  return {
    namespace: first.name.namespace,
    name: first.name.name,
    clusterIPs: addressesOf(rows, "clusterIP"),
    externalIPs: addressesOf(rows, "externalIP"),
    loadBalancerIPs: addressesOf(rows, "loadBalancerIP"),
    sourceRanges: { IPv4: rangesOf(rows, "IPv4"), IPv6: rangesOf(rows, "IPv6") },
    ports,
    affinitySeconds,
    internalLocal,
    externalLocal,
    healthCheckPort: healthCheck?.port ?? 0,
  };
}

/** The ranges are the Service's, so those of any port are those of all. */
function rangesOf(rows: readonly ServicePort[], family: IPFamily): readonly string[] {
  const destinations = rows.filter((row) => row.family === family).flatMap((row) => row.destinations);
  return destinations.find(({ sourceRanges }) => sourceRanges !== undefined)?.sourceRanges ?? [];
}

/** One for each port of the Service; a port that has lost every address but its node port has no number to say. */
function portsOf(rows: readonly ServicePort[]): readonly PortShape[] {
  const byKey = new Map<string, { shape: PortShape; targets: Set<number> }>();
  for (const { key, name, destinations, endpoints } of rows) {
    const port = destinations.find(({ kind }) => kind !== "nodePort")?.port;
    const known = byKey.get(key);
    if (port === undefined && known === undefined) continue;
    const targets = known?.targets ?? new Set<number>();
    for (const endpoint of endpoints) targets.add(endpoint.port);
    const nodePort = destinations.find(({ kind }) => kind === "nodePort")?.port ?? known?.shape.nodePort ?? 0;
    byKey.set(key, {
      shape: { name: name.port, protocol: name.protocol, port: known?.shape.port ?? port ?? 0, nodePort, targets },
      targets,
    });
  }
  return [...byKey.values()].map(({ shape }) => shape);
}

/** For which traffic the endpoints of a row are, by index; those that are for none are not in it. */
function scopesOf(row: ServicePort): ReadonlyMap<number, localv1.EndpointScopes> {
  const internal = new Set(row.internalLocal ? row.local : row.cluster);
  const hasExternal = row.destinations.some(({ kind }) => kind !== "clusterIP");
  const external = new Set(row.externalLocal ? row.local : row.cluster);
  const scopes = new Map<number, localv1.EndpointScopes>();
  for (const [index, { isLocal }] of row.endpoints.entries()) {
    const isInternal = internal.has(index);
    // Nothing comes from outside: as the policy would have it.
    const isExternal = hasExternal ? external.has(index) : isInternal && (isLocal || !row.externalLocal);
    if (isInternal || isExternal) scopes.set(index, { Internal: isInternal, External: isExternal });
  }
  return scopes;
}

function draftsOf(
  rows: readonly ServicePort[],
  ports: readonly PortShape[],
  podOf: (ip: string) => string | undefined,
): readonly LocalDraft[] {
  const drafts = new Map<string, { ip: string; isLocal: boolean; scopes: localv1.EndpointScopes; numbers: Map<string, number> }[]>();
  for (const row of rows) {
    const shape = ports.find(({ name, protocol }) => name === row.name.port && protocol === row.name.protocol);
    if (shape === undefined) continue;
    const name = overrideName(shape, ports);
    for (const [index, scopes] of scopesOf(row)) {
      const endpoint = row.endpoints[index];
      if (endpoint === undefined) continue;
      const { ip, port, isLocal } = endpoint;
      const known = drafts.get(ip) ?? [];
      const fits = known.find(
        (draft) =>
          draft.scopes.Internal === scopes.Internal &&
          draft.scopes.External === scopes.External &&
          (draft.numbers.get(name) ?? port) === port,
      );
      if (fits === undefined) drafts.set(ip, [...known, { ip, isLocal, scopes, numbers: new Map([[name, port]]) }]);
      else fits.numbers.set(name, port);
    }
  }
  return [...drafts.values()].flat().map(({ ip, isLocal, scopes, numbers }) => {
    const overrides = sortedPorts(numbers);
    return { ip, podName: podOf(ip), isLocal, scopes, ports: overrides, content: JSON.stringify([isLocal, scopes, overrides]) };
  });
}

/** Write numbers by name in one order. */
export function sortedPorts(numbers: ReadonlyMap<string, number>): Ports {
  return [...numbers].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([Name, Port]) => ({ Name, Port }));
}
