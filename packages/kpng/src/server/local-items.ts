import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import type { ServicePort } from "@turnout/core";
import { joinFamilies, type Draft } from "./join-families.ts";
import { makeItem, type Item } from "./kpng-item.ts";
import { serviceShape, sortedRows } from "./row-shape.ts";
import { ipSet, overrideName, serviceMessage, type PortShape } from "./service-message.ts";
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
 * An address or node port that another Service has is left out where the Service has it on no port at all.
 */
export function localItems(rows: readonly ServicePort[], podOf: (ip: string) => string | undefined): readonly Item[] {
  const sorted = sortedRows(rows);
  const shape = serviceShape(sorted);
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
