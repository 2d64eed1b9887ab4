import { compareAddresses, hostPort } from "../model/addresses.ts";
import type { Endpoint } from "../model/rows.ts";
import type { EndpointSlice, IPFamily, Protocol, SliceEndpoint } from "../model/api-objects.ts";

/** An endpoint of one port together with the hints that topology looks at. */
export interface Candidate {
  readonly endpoint: Endpoint;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
}

/**
 * Merge the slices of a Service into the endpoints of one of its ports.
 *
 * Shape: unique by ip:port and sorted by it (byte order of the text).
 * Edges: slices of the other family contribute nothing; ports match by name and protocol, never by number. Of two
 * entries with one ip:port the first (slices in order of their names) stays unless a later one is not terminating: a
 * pod's address may be reused while its last owner still terminates.
 * @source kube-proxy endpointslicecache.go addEndpoints; rules
 */
export function endpointsFor(
  slices: ReadonlyMap<string, EndpointSlice>,
  port: { readonly name: string; readonly protocol: Protocol },
  family: IPFamily,
  nodeName: string,
): readonly Candidate[] {
  const found: Candidate[] = [];
  let isAscending = true;
  for (const slice of inNameOrder(slices)) {
    if (slice.family !== family) continue;
    for (const slicePort of slice.ports) {
      if (slicePort.name !== port.name || slicePort.protocol !== port.protocol) continue;
      for (const endpoint of slice.endpoints) {
        const next = candidate(endpoint, slicePort.port, nodeName);
        isAscending &&= found.length === 0 || isBefore(found[found.length - 1] as Candidate, next);
        found.push(next);
      }
    }
  }
  // Nearly always: slices come sorted from intake, and most Services have one.
  return isAscending ? found : sortedUnique(found);
}

function isBefore({ endpoint: a }: Candidate, { endpoint: b }: Candidate): boolean {
  return a.port === b.port ? compareAddresses(a.ip, b.ip) < 0 : hostPort(a.ip, a.port) < hostPort(b.ip, b.port);
}

function sortedUnique(candidates: readonly Candidate[]): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  for (const next of candidates) {
    const key = hostPort(next.endpoint.ip, next.endpoint.port);
    if (!found.has(key) || !next.endpoint.terminating) found.set(key, next);
  }
  return [...found.keys()].sort().map((key) => found.get(key) as Candidate);
}

function candidate(from: SliceEndpoint, port: number, nodeName: string): Candidate {
  const { ip, ready, serving, terminating } = from;
  const isLocal = nodeName !== "" && from.nodeName === nodeName;
  const endpoint = { ip, port, nodeName: from.nodeName, isLocal, ready, serving, terminating };
  return { endpoint, zoneHints: from.zoneHints, nodeHints: from.nodeHints };
}

function inNameOrder(slices: ReadonlyMap<string, EndpointSlice>): Iterable<EndpointSlice> {
  if (slices.size < 2) return slices.values();
  return [...slices.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
