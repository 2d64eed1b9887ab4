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

/** What is known of an address: how many rows want it, and, by `address port protocol`, which Services have endpoints there. */
interface Watched {
  count: number;
  /** Undefined: none, as nearly always. */
  owners: Map<string, Map<string, EndpointOwner>> | undefined;
}

const NONE: ReadonlySet<string> = new Set();
const NO_PLACES: ReadonlyMap<string, number> = new Map();

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
  /** Of each Service with endpoints at watched addresses these, with when their slice was created. */
  readonly #knownOf = new Map<string, Map<string, number>>();

  /** One more row wants an address. */
  watch(address: string): void {
    const known = this.#watched.get(address);
    if (known !== undefined) return void known.count++;
    this.#watched.set(address, { count: 1, owners: undefined });
    this.#fresh.add(address);
  }

  /** One row less wants an address. It is forgotten with the next update, unless a row wants it again: most that let go are only changed. */
  unwatch(address: string): void {
    const known = this.#watched.get(address);
    if (known !== undefined && --known.count === 0) this.#idle.add(address);
  }

  /** Find a Service of another namespace whose endpoint has this address and port: the one with the oldest slice, of equal ones the first by name. */
  ownerOf(address: string, port: number, protocol: Protocol, namespace: string): EndpointOwner | undefined {
    let found: EndpointOwner | undefined;
    for (const owner of this.#watched.get(address)?.owners?.get(`${address} ${port} ${protocol}`)?.values() ?? []) {
      if (owner.service.startsWith(`${namespace}/`)) continue;
      if (found === undefined || isBefore(owner, found)) found = owner;
    }
    return found;
  }

  /**
   * Read the slices of Services that changed, and all slices for addresses that are new; returns `address port protocol` of which something else may
   * be known now.
   */
  update(changed: Iterable<string>, source: SlicesByService): ReadonlySet<string> {
    for (const address of this.#idle) if (this.#watched.get(address)?.count === 0) this.#forget(address);
    this.#idle.clear();
    if (this.#watched.size === 0) return NONE;
    const touched = new Set<string>();
    for (const service of changed) this.#read(service, source, touched);
    if (this.#fresh.size > 0)
      for (const service of source.sliceOwners())
        for (const [place, createdMs] of this.#placesOf(service, source, this.#fresh)) this.#note(place, { service, createdMs }, touched);
    this.#fresh.clear();
    return touched;
  }

  #forget(address: string): void {
    this.#watched.delete(address);
    this.#fresh.delete(address);
    if (this.#watched.size === 0) this.#knownOf.clear();
  }

  /** Replace what is known of a Service's endpoints. Those that stay where they were touch nothing, whatever their conditions. */
  #read(service: string, source: SlicesByService, touched: Set<string>): void {
    const before = this.#knownOf.get(service) ?? NO_PLACES;
    const after = this.#placesOf(service, source, this.#watched);
    for (const place of before.keys()) if (!after.has(place)) this.#drop(place, service, touched);
    for (const [place, createdMs] of after) if (before.get(place) !== createdMs) this.#note(place, { service, createdMs }, touched);
    if (after.size === 0) this.#knownOf.delete(service);
  }

  /** The places of a Service's endpoints at these addresses, each with when its oldest slice was created. */
  #placesOf(service: string, source: SlicesByService, addresses: { has(address: string): boolean }): ReadonlyMap<string, number> {
    let found: Map<string, number> | undefined;
    for (const { endpoints, ports, createdMs } of source.slices(service).values()) {
      for (const { ip } of endpoints) {
        if (!addresses.has(ip)) continue;
        found ??= new Map<string, number>();
        for (const { port, protocol } of ports) {
          const place = `${ip} ${port} ${protocol}`;
          found.set(place, Math.min(createdMs, found.get(place) ?? createdMs));
        }
      }
    }
    return found ?? NO_PLACES;
  }

  #note(place: string, owner: EndpointOwner, touched: Set<string>): void {
    const known = this.#watched.get(addressIn(place));
    if (known === undefined) return;
    known.owners ??= new Map();
    const owners = known.owners.get(place);
    if (owners === undefined) known.owners.set(place, new Map([[owner.service, owner]]));
    else owners.set(owner.service, owner);
    const places = this.#knownOf.get(owner.service);
    if (places === undefined) this.#knownOf.set(owner.service, new Map([[place, owner.createdMs]]));
    else places.set(place, owner.createdMs);
    touched.add(place);
  }

  #drop(place: string, service: string, touched: Set<string>): void {
    this.#watched.get(addressIn(place))?.owners?.get(place)?.delete(service);
    this.#knownOf.get(service)?.delete(place);
    touched.add(place);
  }
}

function addressIn(place: string): string {
  return place.slice(0, place.indexOf(" "));
}

function isBefore(a: EndpointOwner, b: EndpointOwner | undefined): boolean {
  if (b === undefined || a.createdMs !== b.createdMs) return b === undefined || a.createdMs < b.createdMs;
  return a.service < b.service;
}
