import { compareAddresses, hostPort } from "../model/addresses.ts";
import type { Endpoint } from "../model/rows.ts";
import type { EndpointSlice, IPFamily, Protocol, SliceEndpoint } from "../model/api-objects.ts";

/** The endpoints of one port of a Service. */
export interface PortEndpoints {
  readonly endpoints: readonly Endpoint[];
  /** What slices say of each of them, in the same order: it has the hints that topology looks at. */
  readonly entries: readonly SliceEndpoint[];
  /** The number of all of them; 0 where slices may have different ones. */
  readonly port: number;
  /** Endpoints on this node are local; "": none is. */
  readonly nodeName: string;
  /** One of them is ready, or serves while it terminates. */
  readonly hasUsable: boolean;
}

/** An entry of a slice, at one port. */
interface Candidate {
  readonly entry: SliceEndpoint;
  readonly port: number;
}

/**
 * Merge the slices of a Service into the endpoints of one of its ports.
 *
 * Shape: unique by ip:port and sorted by it (byte order of the text). Endpoints of `before`, what this gave last, stay the same objects where their
 * entries are, and `before` itself where nothing is new: of a thousand endpoints one change makes one, and the others are not even looked at.
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
  before?: PortEndpoints,
): PortEndpoints {
  const found = matching(slices, port, family);
  const [only] = found;
  const known = before?.nodeName === nodeName ? before : undefined;
  if (found.length === 1 && only !== undefined) {
    if (known?.entries === only.entries && known.port === only.port) return known;
    // Nearly always: slices come sorted from intake, and most Services have one.
    if (isAscending(only.entries)) {
      const { entries, port: number } = only;
      const endpoints = madeOf(entries, () => number, nodeName, known);
      return { endpoints, entries, port: number, nodeName, hasUsable: entries.some(isUsable) };
    }
  }
  const sorted = sortedUnique(found.flatMap(({ entries, port: number }) => entries.map((entry) => ({ entry, port: number }))));
  const entries = sorted.map(({ entry }) => entry);
  const endpoints = madeOf(entries, (index) => (sorted[index] as Candidate).port, nodeName, known);
  return { endpoints, entries, port: 0, nodeName, hasUsable: entries.some(isUsable) };
}

/** The entries of all slices that have the port, with its number there. */
function matching(
  slices: ReadonlyMap<string, EndpointSlice>,
  port: { readonly name: string; readonly protocol: Protocol },
  family: IPFamily,
): readonly { readonly entries: readonly SliceEndpoint[]; readonly port: number }[] {
  const found: { entries: readonly SliceEndpoint[]; port: number }[] = [];
  for (const slice of inNameOrder(slices)) {
    if (slice.family !== family || slice.endpoints.length === 0) continue;
    for (const { name, protocol, port: number } of slice.ports) {
      if (name === port.name && protocol === port.protocol) found.push({ entries: slice.endpoints, port: number });
    }
  }
  return found;
}

/** Tell whether no address comes twice; they are sorted. */
function isAscending(entries: readonly SliceEndpoint[]): boolean {
  for (let index = 1; index < entries.length; index++) {
    if (compareAddresses((entries[index - 1] as SliceEndpoint).ip, (entries[index] as SliceEndpoint).ip) >= 0) return false;
  }
  return true;
}

function sortedUnique(candidates: readonly Candidate[]): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  for (const next of candidates) {
    const key = hostPort(next.entry.ip, next.port);
    if (!found.has(key) || !next.entry.terminating) found.set(key, next);
  }
  return [...found.keys()].sort().map((key) => found.get(key) as Candidate);
}

function madeOf(
  entries: readonly SliceEndpoint[],
  portAt: (index: number) => number,
  nodeName: string,
  before: PortEndpoints | undefined,
): readonly Endpoint[] {
  const known = before?.entries ?? [];
  let at = 0;
  return entries.map((entry, index) => {
    const port = portAt(index);
    // What went is passed over; both are sorted.
    while (at < known.length && known[at] !== entry && compareAddresses((known[at] as SliceEndpoint).ip, entry.ip) < 0) at++;
    const same = known[at] === entry ? before?.endpoints[at] : undefined;
    if (known[at]?.ip === entry.ip) at++;
    if (same !== undefined && (before?.port === port || same.port === port)) return same;
    const { ip, ready, serving, terminating } = entry;
    const isLocal = nodeName !== "" && entry.nodeName === nodeName;
    return { ip, port, nodeName: entry.nodeName, isLocal, ready, serving, terminating };
  });
}

function isUsable({ ready, serving, terminating }: SliceEndpoint): boolean {
  return ready || (serving && terminating);
}

function inNameOrder(slices: ReadonlyMap<string, EndpointSlice>): Iterable<EndpointSlice> {
  if (slices.size < 2) return slices.values();
  return [...slices.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
