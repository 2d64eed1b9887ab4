import { compareAddresses, hostPort } from "../model/addresses.ts";
import type { Endpoint } from "../model/rows.ts";
import type { EndpointSlice, IPFamily, Protocol, SliceEndpoint } from "../model/api-objects.ts";

/** The endpoints of one port of a Service. */
export interface PortEndpoints {
  readonly endpoints: readonly Endpoint[];
  /** What slices say of each of them, in the same order: it has the hints that topology looks at. */
  readonly entries: readonly SliceEndpoint[];
  /** Entries that lost their ip:port on a tie, and win it on their own node, in order of precedence; nearly always none. */
  readonly rivals: readonly Rival[];
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
  /** When the slice says that its last change was triggered. */
  readonly triggeredMs: number | undefined;
}

/** An entry that is the endpoint on its own node only. */
export interface Rival {
  /** Which endpoint. */
  readonly index: number;
  readonly entry: SliceEndpoint;
}

const NO_RIVALS: readonly Rival[] = [];

/**
 * Merge the slices of a Service into the endpoints of one of its ports.
 *
 * Shape: unique by ip:port and sorted by it (byte order of the text). Endpoints of `before`, what this gave last, stay the same objects where their
 * entries are, and `before` itself where nothing is new: of a thousand endpoints one change makes one, and the others are not even looked at.
 * Edges: slices of the other family contribute nothing; ports match by name and protocol, never by number. Of several entries with one ip:port
 * {@link precedes} says which one counts: an address is reused, a virtual machine moves, an endpoint is in two slices for a moment.
 * @source kube-proxy endpointslicecache.go addEndpoints, which decides by "terminating" only; rules
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
      return { endpoints, entries, rivals: NO_RIVALS, port: number, nodeName, hasUsable: entries.some(isUsable) };
    }
  }
  const groups = sortedGroups(found.flatMap(({ entries, ...at }) => entries.map((entry) => ({ entry, ...at }))));
  const chosen = groups.map((group) => group.reduce((best, next) => (precedes(best, next, nodeName) ? best : next)));
  const entries = chosen.map(({ entry }) => entry);
  const endpoints = madeOf(entries, (index) => (chosen[index] as Candidate).port, nodeName, known);
  return { endpoints, entries, rivals: rivalsOf(groups, chosen), port: 0, nodeName, hasUsable: entries.some(isUsable) };
}

/**
 * Make the endpoints on a node local, of a port's in which none is; the others stay the same objects.
 */
export function localized(port: PortEndpoints, nodeName: string): PortEndpoints {
  const endpoints = port.endpoints.map((one) => (one.nodeName === nodeName ? { ...one, isLocal: true } : one));
  const entries = port.rivals.length === 0 ? port.entries : [...port.entries];
  for (const { index, entry } of port.rivals) {
    const endpoint = endpoints[index] as Endpoint;
    if (endpoint.isLocal || entry.nodeName !== nodeName) continue;
    endpoints[index] = endpointOf(entry, endpoint.port, nodeName);
    (entries as SliceEndpoint[])[index] = entry;
  }
  return { ...port, endpoints, entries, nodeName };
}

/**
 * Whether the first of two entries with one ip:port is the endpoint: by its conditions, then because it is on this node, then because its slice's change
 * is the newer one. Of equal ones it is the second.
 * @source rule R-15
 */
export function precedes(a: Omit<Candidate, "port">, b: Omit<Candidate, "port">, nodeName: string): boolean {
  const byRank = rankOf(a.entry) - rankOf(b.entry);
  if (byRank !== 0) return byRank > 0;
  const byNode = Number(isOn(a.entry, nodeName)) - Number(isOn(b.entry, nodeName));
  if (byNode !== 0) return byNode > 0;
  return (a.triggeredMs ?? 0) > (b.triggeredMs ?? 0);
}

/** The better an entry's conditions, the higher. */
function rankOf({ ready, serving, terminating }: SliceEndpoint): number {
  if (ready) return terminating ? 2 : 3;
  return serving && terminating ? 1 : 0;
}

function isOn(entry: SliceEndpoint, nodeName: string): boolean {
  return nodeName !== "" && entry.nodeName === nodeName;
}

/** The entries of all slices that have the port, with its number there. */
function matching(
  slices: ReadonlyMap<string, EndpointSlice>,
  port: { readonly name: string; readonly protocol: Protocol },
  family: IPFamily,
): readonly (Omit<Candidate, "entry"> & { readonly entries: readonly SliceEndpoint[] })[] {
  const found: (Omit<Candidate, "entry"> & { readonly entries: readonly SliceEndpoint[] })[] = [];
  for (const slice of inNameOrder(slices)) {
    if (slice.family !== family || slice.endpoints.length === 0) continue;
    for (const { name, protocol, port: number } of slice.ports) {
      if (name !== port.name || protocol !== port.protocol) continue;
      found.push({ entries: slice.endpoints, port: number, triggeredMs: slice.triggeredMs });
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

/** Candidates by ip:port, sorted by it. */
function sortedGroups(candidates: readonly Candidate[]): readonly (readonly Candidate[])[] {
  const found = Map.groupBy(candidates, ({ entry, port }) => hostPort(entry.ip, port));
  return [...found.keys()].sort().map((key) => found.get(key) as Candidate[]);
}

function rivalsOf(groups: readonly (readonly Candidate[])[], chosen: readonly Candidate[]): readonly Rival[] {
  const rivals: Rival[] = [];
  for (const [index, group] of groups.entries()) {
    if (group.length === 1) continue;
    const { entry: winner } = chosen[index] as Candidate;
    const others = group.filter(({ entry }) => rankOf(entry) === rankOf(winner) && entry.nodeName !== winner.nodeName);
    // As `precedes` has it: the newest change first, and of equal ones the last.
    for (const { entry } of others.reverse().sort((a, b) => (b.triggeredMs ?? 0) - (a.triggeredMs ?? 0)))
      if (entry.nodeName !== undefined) rivals.push({ index, entry });
  }
  return rivals.length === 0 ? NO_RIVALS : rivals;
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
    return endpointOf(entry, port, nodeName);
  });
}

function endpointOf(entry: SliceEndpoint, port: number, nodeName: string): Endpoint {
  const { ip, ready, serving, terminating } = entry;
  return { ip, port, nodeName: entry.nodeName, isLocal: isOn(entry, nodeName), ready, serving, terminating };
}

function isUsable({ ready, serving, terminating }: SliceEndpoint): boolean {
  return ready || (serving && terminating);
}

function inNameOrder(slices: ReadonlyMap<string, EndpointSlice>): Iterable<EndpointSlice> {
  if (slices.size < 2) return slices.values();
  return [...slices.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
