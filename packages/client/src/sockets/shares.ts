import { serviceKeyOf } from "@turnout/core";

/** What one namespace holds, by Service. */
interface OfNamespace<T> {
  size: number;
  readonly services: Map<string, Set<T>>;
}

/** From whom one has to be taken. */
export interface Giver<T> {
  /** What it holds, the least recently used first; not empty. */
  readonly held: ReadonlySet<T>;
  /** It is the Service itself that wants one more. */
  readonly isOwn: boolean;
}

/**
 * Shares a bound among namespaces, and within a namespace among Services.
 *
 * Shape: what is held is named by the key of its row. A Service that is alone may have everything; where the bound is reached, the namespace that has most gives
 * to one that has less, and its Service that has most.
 */
export class Shares<T> {
  readonly #max: number;
  readonly #namespaces = new Map<string, OfNamespace<T>>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /** Hold one more; one that is held is the most recently used from now on. */
  add(row: string, item: T): void {
    const service = serviceKeyOf(row);
    const namespace = namespaceOf(service);
    const own = this.#namespaces.get(namespace) ?? { size: 0, services: new Map<string, Set<T>>() };
    const held = own.services.get(service) ?? new Set();
    if (!held.delete(item)) {
      own.size++;
      this.#size++;
    }
    held.add(item);
    own.services.set(service, held);
    this.#namespaces.set(namespace, own);
  }

  /** Hold one no longer. */
  delete(row: string, item: T): void {
    const service = serviceKeyOf(row);
    const namespace = namespaceOf(service);
    const own = this.#namespaces.get(namespace);
    const held = own?.services.get(service);
    if (own === undefined || held?.delete(item) !== true) return;
    this.#size--;
    own.size--;
    if (held.size === 0) own.services.delete(service);
    if (own.size === 0) this.#namespaces.delete(namespace);
  }

  /**
   * Say from whom one has to be taken before a row gets one more; undefined: there is room.
   *
   * Edges: nothing is taken from those that would have less than the taker then: it has to give of its own.
   */
  giverFor(row: string): Giver<T> | undefined {
    if (this.#size < this.#max) return undefined;
    const service = serviceKeyOf(row);
    const own = this.#namespaces.get(namespaceOf(service));
    const most = largest(this.#namespaces.values());
    const { services } = (own === undefined || (most?.size ?? 0) > own.size + 1 ? most : own) ?? { services: new Map<string, Set<T>>() };
    const mine = services.get(service);
    const held = largest(services.values());
    if (mine !== undefined && (held?.size ?? 0) <= mine.size + 1) return { held: mine, isOwn: true };
    return held === undefined ? undefined : { held, isOwn: false };
  }
}

function largest<V extends { readonly size: number }>(all: Iterable<V>): V | undefined {
  let most: V | undefined;
  for (const one of all) if (most === undefined || one.size > most.size) most = one;
  return most;
}

function namespaceOf(service: string): string {
  return service.slice(0, service.indexOf("/"));
}
