import { serviceKeyOf } from "../../model/names.ts";
import type { ServicePort } from "../../model/rows.ts";

/** A row that waits for a turn: as it was when it began to wait, as it should be, and the addresses that it gives up or gets by that. */
interface Waiting {
  readonly before: ServicePort | undefined;
  readonly after: ServicePort | undefined;
  readonly moved: readonly string[];
}

/** The rows of one turn. */
export interface Turn {
  readonly keys: readonly string[];
  /** How much work they are: destinations times endpoints, and source ranges, about. */
  readonly entries: number;
}

/**
 * Rows that have changed and wait until it is their turn: namespaces are served one after the other, so that one that changes all the time delays no
 * other by more than a turn.
 *
 * Shape: of a namespace the Service that has waited longest comes first, with all its rows. A Service that changes again keeps its place.
 * Edges: an address that passes from one row to another does so in one turn, with all rows of both Services: there is no moment at which both rows
 * have it, or neither.
 */
export class WaitingRows {
  readonly #rows = new Map<string, Waiting>();
  /** By namespace, the one served longest ago first, and by Service: the keys of the rows that wait. */
  readonly #namespaces = new Map<string, Map<string, Set<string>>>();
  /** The keys of the rows that give up or get an address. */
  readonly #moving = new Map<string, Set<string>>();

  get size(): number {
    return this.#rows.size;
  }

  has(key: string): boolean {
    return this.#rows.has(key);
  }

  /**
   * Have a row wait that was `before` and should be `after`; undefined: there was none, or should be none. One that waits already keeps its place.
   * @param nodeAddresses where node ports are answered: a port of another kind there is the same as the node port of its number
   */
  add(key: string, before: ServicePort | undefined, after: ServicePort | undefined, nodeAddresses: readonly string[] = []): void {
    const known = this.#rows.get(key);
    if (known !== undefined) this.#unlink(key, known);
    const was = known === undefined ? before : known.before;
    const row = { before: was, after, moved: movedAddresses(was, after, nodeAddresses) };
    this.#rows.set(key, row);
    for (const address of row.moved) keysAt(this.#moving, address).add(key);
    if (known !== undefined) return;
    const [namespace, service] = placeOf(key);
    let services = this.#namespaces.get(namespace);
    if (services === undefined) this.#namespaces.set(namespace, (services = new Map<string, Set<string>>()));
    keysAt(services, service).add(key);
  }

  /** A row waits no more. */
  delete(key: string): void {
    const row = this.#rows.get(key);
    if (row === undefined) return;
    this.#rows.delete(key);
    this.#unlink(key, row);
    const [namespace, service] = placeOf(key);
    const services = this.#namespaces.get(namespace);
    const keys = services?.get(service);
    keys?.delete(key);
    if (keys?.size === 0) services?.delete(service);
    if (services?.size === 0) this.#namespaces.delete(namespace);
  }

  /** The rows as they were when they began to wait, by their keys. */
  *before(): Iterable<readonly [key: string, row: ServicePort | undefined]> {
    for (const [key, { before }] of this.#rows) yield [key, before];
  }

  /** Take rows for one turn: of each namespace one Service, and again, up to so many entries. The namespace served longest ago gets one however large it is. */
  take(entriesMax: number): Turn {
    const keys: string[] = [];
    let entries = 0;
    // One that is put at the end meanwhile is met again.
    for (const [namespace, services] of this.#namespaces) {
      if (keys.length > 0 && entries >= entriesMax) break;
      const [service = ""] = services.keys();
      const group = this.#groupOf(service);
      const size = group.reduce((sum, key) => sum + this.#entriesOf(key), 0);
      if (keys.length > 0 && entries + size > entriesMax) continue;
      entries += size;
      keys.push(...group);
      for (const key of group) this.delete(key);
      this.#namespaces.delete(namespace);
      if (services.size > 0) this.#namespaces.set(namespace, services);
    }
    return { keys, entries };
  }

  /** The rows of a Service, and of all with which it has to change at once. */
  #groupOf(service: string): readonly string[] {
    const group: string[] = [];
    const services = new Set([service]);
    for (const one of services) {
      for (const key of this.#namespaces.get(placeOf(one)[0])?.get(one) ?? []) {
        group.push(key);
        for (const address of this.#rows.get(key)?.moved ?? [])
          for (const other of this.#moving.get(address) ?? []) services.add(serviceKeyOf(other));
      }
    }
    return group;
  }

  #entriesOf(key: string): number {
    const { before, after } = this.#rows.get(key) as Waiting;
    return Math.max(entriesOf(before), entriesOf(after));
  }

  #unlink(key: string, { moved }: Waiting): void {
    for (const address of moved) {
      const keys = this.#moving.get(address);
      keys?.delete(key);
      if (keys?.size === 0) this.#moving.delete(address);
    }
  }
}

function keysAt(map: Map<string, Set<string>>, name: string): Set<string> {
  let keys = map.get(name);
  if (keys === undefined) map.set(name, (keys = new Set<string>()));
  return keys;
}

/** The namespace and the `namespace/name` of a row's Service. */
function placeOf(key: string): readonly [namespace: string, service: string] {
  return [key.slice(0, key.indexOf("/")), serviceKeyOf(key)];
}

function entriesOf(row: ServicePort | undefined): number {
  if (row === undefined) return 1;
  const ranges = row.destinations.reduce((sum, { sourceRanges = [] }) => sum + sourceRanges.length, 0);
  return 1 + row.destinations.length * (1 + row.endpoints.length) + ranges;
}

/** What only one of the two has. */
function movedAddresses(
  before: ServicePort | undefined,
  after: ServicePort | undefined,
  nodeAddresses: readonly string[],
): readonly string[] {
  // The usual change is one of endpoints.
  if (before?.destinations === after?.destinations) return [];
  const [had, has] = [addressesOf(before, nodeAddresses), addressesOf(after, nodeAddresses)];
  return [...[...had].filter((one) => !has.has(one)), ...[...has].filter((one) => !had.has(one))];
}

function addressesOf(row: ServicePort | undefined, nodeAddresses: readonly string[]): ReadonlySet<string> {
  const nameOf = (address: string): string => (nodeAddresses.includes(address) ? "" : address);
  return new Set(row?.destinations.map(({ address, port }) => `${nameOf(address)} ${port} ${row.name.protocol}`));
}
