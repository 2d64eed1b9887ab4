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

/** What is known of an address: how many rows want it, and, by `port protocol`, which Services have endpoints there. */
interface Watched {
  count: number;
  /** Undefined: none, as nearly always. */
  owners: Map<string, Map<string, EndpointOwner>> | undefined;
}

const NONE: ReadonlySet<string> = new Set();

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
  /** Of each Service with endpoints at watched addresses, these. */
  readonly #addressesOf = new Map<string, ReadonlySet<string>>();

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
    for (const owner of this.#watched.get(address)?.owners?.get(`${port} ${protocol}`)?.values() ?? []) {
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
    if (this.#fresh.size > 0) for (const service of source.sliceOwners()) this.#search(service, source, this.#fresh, touched);
    this.#fresh.clear();
    return touched;
  }

  #forget(address: string): void {
    this.#watched.delete(address);
    this.#fresh.delete(address);
    if (this.#watched.size === 0) this.#addressesOf.clear();
  }

  /** Replace what is known of a Service's endpoints. */
  #read(service: string, source: SlicesByService, touched: Set<string>): void {
    for (const address of this.#addressesOf.get(service) ?? NONE)
      for (const [place, owners] of this.#watched.get(address)?.owners ?? [])
        if (owners.delete(service)) touched.add(`${address} ${place}`);
    this.#addressesOf.delete(service);
    this.#search(service, source, this.#watched, touched);
  }

  #search(service: string, source: SlicesByService, addresses: { has(address: string): boolean }, touched: Set<string>): void {
    let found: Set<string> | undefined;
    for (const { endpoints, ports, createdMs } of source.slices(service).values()) {
      for (const { ip } of endpoints) {
        if (!addresses.has(ip)) continue;
        found ??= new Set(this.#addressesOf.get(service));
        found.add(ip);
        for (const { port, protocol } of ports) {
          const place = `${port} ${protocol}`;
          touched.add(`${ip} ${place}`);
          this.#note(ip, place, { service, createdMs });
        }
      }
    }
    if (found !== undefined) this.#addressesOf.set(service, found);
  }

  #note(address: string, place: string, owner: EndpointOwner): void {
    const known = this.#watched.get(address);
    if (known === undefined) return;
    known.owners ??= new Map();
    const owners = known.owners.get(place);
    if (owners === undefined) known.owners.set(place, new Map([[owner.service, owner]]));
    else if (isBefore(owner, owners.get(owner.service))) owners.set(owner.service, owner);
  }
}

function isBefore(a: EndpointOwner, b: EndpointOwner | undefined): boolean {
  if (b === undefined || a.createdMs !== b.createdMs) return b === undefined || a.createdMs < b.createdMs;
  return a.service < b.service;
}
