import type { EndpointSlice, Protocol } from "../model/api-objects.ts";

/** The slices of all Services. */
export interface SlicesByService {
  /** `namespace/name` of every Service that has slices, whether it exists or not. */
  sliceOwners(): Iterable<string>;
  slices(serviceKey: string): ReadonlyMap<string, EndpointSlice>;
}

/** A Service whose endpoint has an address and port. */
export interface EndpointOwner {
  /** `namespace/name`. */
  readonly service: string;
  /** When its oldest slice with that endpoint was created, ms since the epoch. */
  readonly createdMs: number;
}

/** A slice that has an endpoint at an address. */
interface Located {
  readonly createdMs: number;
  /** `port protocol` of each of its ports. One object for all addresses of the slice. */
  readonly ports: ReadonlySet<string>;
  /** The ports as one text, by which two versions of a slice are compared. */
  readonly portsText: string;
}

/** What is known of an address: which rows want it, each with how many times, and which Services have endpoints there. */
interface Watched {
  readonly rows: Map<string, number>;
  /** Undefined: none, as nearly always. */
  owners: Map<string, readonly Located[]> | undefined;
}

const NONE: ReadonlySet<string> = new Set();
const NO_PLACES: ReadonlyMap<string, readonly Located[]> = new Map();

/**
 * Which endpoints have an address that Services want as external or load-balancer IP.
 *
 * Shape: only addresses that some row wants are remembered, so that a hundred thousand endpoints cost nothing. A new one is looked for in all
 * slices once; afterwards only the slices of Services that changed are read.
 */
export class EndpointsInUse {
  readonly #watched = new Map<string, Watched>();
  /** Those that no slice has been searched for. */
  readonly #fresh = new Set<string>();
  /** Those that no row may want any more. */
  readonly #idle = new Set<string>();
  /** Of each Service with endpoints at watched addresses these, each with the slices that have it. */
  readonly #knownOf = new Map<string, Map<string, readonly Located[]>>();

  /** A row wants an address. */
  watch(address: string, row: string): void {
    const known = this.#watched.get(address);
    if (known !== undefined) return void known.rows.set(row, (known.rows.get(row) ?? 0) + 1);
    this.#watched.set(address, { rows: new Map([[row, 1]]), owners: undefined });
    this.#fresh.add(address);
  }

  /** A row wants an address no more. It is forgotten with the next update, unless a row wants it again: most that let go are only changed. */
  unwatch(address: string, row: string): void {
    const rows = this.#watched.get(address)?.rows;
    const count = rows?.get(row);
    if (rows === undefined || count === undefined) return;
    if (count > 1) rows.set(row, count - 1);
    else rows.delete(row);
    if (rows.size === 0) this.#idle.add(address);
  }

  /** Find a Service of another namespace whose endpoint has this address and port: the one with the oldest slice, of equal ones the first by name. */
  ownerOf(address: string, port: number, protocol: Protocol, namespace: string): EndpointOwner | undefined {
    let found: EndpointOwner | undefined;
    for (const [service, slices] of this.#watched.get(address)?.owners ?? []) {
      if (service.startsWith(`${namespace}/`)) continue;
      for (const { createdMs, ports } of slices) {
        if (!ports.has(`${port} ${protocol}`)) continue;
        const owner = { service, createdMs };
        if (isBefore(owner, found)) found = owner;
      }
    }
    return found;
  }

  /**
   * Read the slices of Services that changed, and all slices for addresses that are new; returns the rows that want an address of which something else
   * may be known now.
   */
  update(changed: Iterable<string>, source: SlicesByService): ReadonlySet<string> {
    for (const address of this.#idle) if (this.#watched.get(address)?.rows.size === 0) this.#forget(address);
    this.#idle.clear();
    if (this.#watched.size === 0) return NONE;
    const touched = new Set<string>();
    for (const service of changed) this.#read(service, source, touched);
    if (this.#fresh.size > 0)
      for (const service of source.sliceOwners())
        for (const [address, slices] of placesOf(service, source, this.#fresh)) this.#note(address, service, slices, touched);
    this.#fresh.clear();
    const rows = new Set<string>();
    for (const address of touched) for (const row of this.#watched.get(address)?.rows.keys() ?? []) rows.add(row);
    return rows;
  }

  #forget(address: string): void {
    for (const service of this.#watched.get(address)?.owners?.keys() ?? []) this.#unknow(service, address);
    this.#watched.delete(address);
    this.#fresh.delete(address);
  }

  #unknow(service: string, address: string): void {
    const known = this.#knownOf.get(service);
    known?.delete(address);
    if (known?.size === 0) this.#knownOf.delete(service);
  }

  /** Replace what is known of a Service's endpoints. Those that stay where they were touch nothing, whatever their conditions. */
  #read(service: string, source: SlicesByService, touched: Set<string>): void {
    const before = this.#knownOf.get(service) ?? NO_PLACES;
    const after = placesOf(service, source, this.#watched);
    for (const address of before.keys()) if (!after.has(address)) this.#drop(address, service, touched);
    for (const [address, slices] of after) if (!isSame(before.get(address), slices)) this.#note(address, service, slices, touched);
  }

  #note(address: string, service: string, slices: readonly Located[], touched: Set<string>): void {
    const known = this.#watched.get(address);
    if (known === undefined) return;
    known.owners ??= new Map();
    known.owners.set(service, slices);
    const places = this.#knownOf.get(service);
    if (places === undefined) this.#knownOf.set(service, new Map([[address, slices]]));
    else places.set(address, slices);
    touched.add(address);
  }

  #drop(address: string, service: string, touched: Set<string>): void {
    this.#watched.get(address)?.owners?.delete(service);
    this.#unknow(service, address);
    touched.add(address);
  }
}

/** The slices of a Service by those of these addresses at which they have an endpoint. */
function placesOf(
  service: string,
  source: SlicesByService,
  addresses: { has(address: string): boolean },
): ReadonlyMap<string, readonly Located[]> {
  let found: Map<string, Located[]> | undefined;
  for (const { endpoints, ports, createdMs } of source.slices(service).values()) {
    let slice: Located | undefined;
    for (const { ip } of endpoints) {
      if (!addresses.has(ip)) continue;
      slice ??= located(ports, createdMs);
      found ??= new Map<string, Located[]>();
      const slices = found.get(ip);
      if (slices === undefined) found.set(ip, [slice]);
      else if (slices.at(-1) !== slice) slices.push(slice);
    }
  }
  return found ?? NO_PLACES;
}

function located(ports: EndpointSlice["ports"], createdMs: number): Located {
  const texts = new Set(ports.map(({ port, protocol }) => `${port} ${protocol}`));
  return { createdMs, ports: texts, portsText: [...texts].join() };
}

function isSame(a: readonly Located[] | undefined, b: readonly Located[]): boolean {
  if (a?.length !== b.length) return false;
  return a.every(({ createdMs, portsText }, index) => b[index]?.createdMs === createdMs && b[index].portsText === portsText);
}

function isBefore(a: EndpointOwner, b: EndpointOwner | undefined): boolean {
  if (b === undefined || a.createdMs !== b.createdMs) return b === undefined || a.createdMs < b.createdMs;
  return a.service < b.service;
}
