import { compareAddresses, hostPort } from "../model/addresses.ts";
import type { Endpoint } from "../model/rows.ts";
import type { EndpointSlice, IPFamily, Protocol, SliceEndpoint } from "../model/api-objects.ts";
import { ENTRIES_MADE_MAX, EndpointChoice, endpointsPerPort } from "../model/first-endpoints.ts";

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
  /** Index of its source. */
  readonly origin: number;
  /** When the slice says that its last change was triggered. */
  readonly triggeredMs: number | undefined;
}

/** An entry that is the endpoint on its own node only. */
export interface Rival {
  /** Which endpoint. */
  readonly index: number;
  readonly entry: SliceEndpoint;
}

/** One port of a Service, as its endpoints are asked for. */
export interface AskedPort {
  readonly name: string;
  readonly protocol: Protocol;
  /** On how many addresses it answers. */
  readonly places: number;
}

/** A slice that has a port, with the number that the port has there. */
interface PortSource {
  readonly slice: EndpointSlice;
  /** The slice's place among those of the Service. */
  readonly at: number;
  readonly entries: readonly SliceEndpoint[];
  readonly port: number;
}

/** What slices come to for one port. */
interface Merged {
  readonly entries: readonly SliceEndpoint[];
  /** Index of the source that each is of; empty where there is one. */
  readonly origins: readonly number[];
  readonly rivals: readonly Rival[];
}

const NO_RIVALS: readonly Rival[] = [];
const NO_SOURCES: readonly PortSource[] = [];
const NO_NUMBERS: readonly number[] = [];

/**
 * Merge the slices of a Service into the endpoints of each of its ports.
 *
 * Shape: unique by ip:port and sorted by it (byte order of the text). Endpoints of `before`, what this gave last, stay the same objects where their
 * entries are, and `before` itself where nothing is new: of a thousand endpoints one change makes one, and the others are not even looked at.
 * Edges: slices of the other family contribute nothing; ports match by name and protocol, never by number. Of several entries with one ip:port
 * {@link precedes} says which one counts: an address is reused, a virtual machine moves, an endpoint is in two slices for a moment.
 * @source kube-proxy endpointslicecache.go addEndpoints, which decides by "terminating" only; rules
 */
export function endpointsOfPorts(
  slices: ReadonlyMap<string, EndpointSlice>,
  ports: readonly AskedPort[],
  family: IPFamily,
  nodeName: string,
  before?: readonly PortEndpoints[],
): readonly PortEndpoints[] {
  const byPort = sourcesByPort(slices, family);
  const sources = ports.map(({ name, protocol }) => byPort.get(`${name}/${protocol}`) ?? NO_SOURCES);
  const sizes = ports.map(({ places }, index) => ({ places, endpoints: entryCount(sources[index]) }));
  // One more than fit: `ServiceBound` leaves it out, and reports that there are too many.
  const merger = new Merger(nodeName, endpointsPerPort(sizes, ENTRIES_MADE_MAX) + 1);
  return sources.map((found, index) => {
    const known = before?.[index]?.nodeName === nodeName ? before[index] : undefined;
    const { entries, numbers, rivals } = merger.merge(found);
    const number = numbers.length === 0 ? (found[0]?.port ?? 0) : 0;
    if (number !== 0 && known?.entries === entries && known.port === number) return known;
    const endpoints = madeOf(entries, (at) => numbers[at] ?? number, nodeName, known);
    return { endpoints, entries, rivals, port: number, nodeName, hasUsable: entries.some(isUsable) };
  });
}

/** Merges sources of ports; ports that have the same sources, with numbers that are sorted in the same way, share the result. */
class Merger {
  readonly #nodeName: string;
  /** Endpoints of one port at most. */
  readonly #most: number;
  readonly #choice: EndpointChoice;
  readonly #merged = new Map<string, Merged>();
  readonly #first = new Map<readonly SliceEndpoint[], readonly SliceEndpoint[]>();

  constructor(nodeName: string, most: number) {
    this.#nodeName = nodeName;
    this.#most = most;
    this.#choice = new EndpointChoice(nodeName);
  }

  merge(found: readonly PortSource[]): Merged & { readonly numbers: readonly number[] } {
    // Entries are grouped and sorted by ip:port as text: only the order of the numbers counts.
    const texts = [...new Set(found.map(({ port }) => String(port)))].sort();
    const key = found.map(({ at, port }) => `${at}:${texts.indexOf(String(port))}`).join();
    let merged = this.#merged.get(key);
    if (merged === undefined) this.#merged.set(key, (merged = this.#merge(found)));
    return { ...merged, numbers: texts.length < 2 ? NO_NUMBERS : merged.origins.map((index) => found[index]?.port ?? 0) };
  }

  #merge(found: readonly PortSource[]): Merged {
    const [only] = found;
    if (only !== undefined && found.length === 1) {
      const entries = this.#firstOf(only.entries);
      // Nearly always: slices come sorted from intake, and most Services have one.
      if (isAscending(entries)) return { entries, origins: NO_NUMBERS, rivals: NO_RIVALS };
    }
    const candidates = this.#firstCandidates(
      found.flatMap(({ entries, slice: { triggeredMs }, port }, origin) =>
        this.#firstOf(entries).map((entry): Candidate => ({ entry, port, origin, triggeredMs })),
      ),
    );
    const groups = sortedGroups(candidates);
    const chosen = groups.map((group) => group.reduce((best, next) => (precedes(best, next, this.#nodeName) ? best : next)));
    return { entries: chosen.map(({ entry }) => entry), origins: chosen.map(({ origin }) => origin), rivals: rivalsOf(groups, chosen) };
  }

  #firstOf(entries: readonly SliceEndpoint[]): readonly SliceEndpoint[] {
    if (entries.length <= this.#most) return entries;
    let first = this.#first.get(entries);
    if (first === undefined) this.#first.set(entries, (first = this.#chosen(entries, (entry) => entry)));
    return first;
  }

  #firstCandidates(candidates: readonly Candidate[]): readonly Candidate[] {
    return candidates.length <= this.#most ? candidates : this.#chosen(candidates, ({ entry }) => entry);
  }

  #chosen<T>(items: readonly T[], entryOf: (item: T) => SliceEndpoint): readonly T[] {
    const chosen = this.#choice.firstOf(items.length, this.#most, (index) => {
      const entry = entryOf(items[index] as T);
      return { rank: isUsable(entry) ? (isOn(entry, this.#nodeName) ? 0 : 1) : 2, ip: entry.ip };
    });
    return chosen.map((index) => items[index] as T);
  }
}

function entryCount(sources: readonly PortSource[] = []): number {
  return sources.reduce((sum, { entries }) => sum + entries.length, 0);
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
export function precedes(a: Omit<Candidate, "port" | "origin">, b: Omit<Candidate, "port" | "origin">, nodeName: string): boolean {
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

/** The slices of a family that have endpoints, in the order of their names, by `name/protocol` of their ports. */
function sourcesByPort(slices: ReadonlyMap<string, EndpointSlice>, family: IPFamily): ReadonlyMap<string, readonly PortSource[]> {
  const found = new Map<string, PortSource[]>();
  let at = 0;
  for (const slice of inNameOrder(slices)) {
    at++;
    const { endpoints: entries } = slice;
    if (slice.family !== family || entries.length === 0) continue;
    for (const { name, protocol, port } of slice.ports) {
      const key = `${name}/${protocol}`;
      const source = { slice, at, entries, port };
      const sources = found.get(key);
      if (sources === undefined) found.set(key, [source]);
      else sources.push(source);
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
