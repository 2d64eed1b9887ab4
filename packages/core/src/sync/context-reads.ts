import type { Context } from "../contract/backend.ts";
import { isEqual } from "../model/equal.ts";

type Fields = Readonly<Record<string, unknown>>;

const PARTS = ["node", "host"] as const;
const MANY_ENDPOINTS = "hasManyEndpoints";

/**
 * Knows what of the context the rows' renders have read, by the fields of the node and of the host's facts, so that rows are rendered again only
 * when that has changed.
 *
 * Shape: of all rows together, and of all contexts ever: what one render has read another may have remembered.
 * Edges: facts that are no plain object count as read. A field that comes or goes counts as a change of all, because nobody can have read it.
 */
export class ContextReads {
  readonly #read = new Set<string>();

  /** The same context; what is read of this one is noted. */
  watch<H>({ node, host, hasManyEndpoints = false }: Context<H>): Context<H> {
    const read = this.#read;
    return {
      node: this.#watched("node", node),
      host: this.#watched("host", host),
      get hasManyEndpoints() {
        read.add(MANY_ENDPOINTS);
        return hasManyEndpoints;
      },
    };
  }

  /** Whether rows that were rendered with one context may be otherwise with another. */
  isConcerned<H>(before: Context<H>, after: Context<H>): boolean {
    if (this.#read.has(MANY_ENDPOINTS) && before.hasManyEndpoints !== after.hasManyEndpoints) return true;
    return PARTS.some((part) => this.#isPartConcerned(part, before[part], after[part]));
  }

  #isPartConcerned(part: string, before: unknown, after: unknown): boolean {
    if (before === after) return false;
    if (!isPlainObject(before) || !isPlainObject(after)) return !isEqual(before, after);
    const keys = Object.keys(after);
    if (keys.length !== Object.keys(before).length || !keys.every((key) => Object.hasOwn(before, key))) return true;
    return keys.some((key) => this.#read.has(`${part}.${key}`) && !isEqual(before[key], after[key]));
  }

  #watched<T>(part: string, value: T): T {
    if (!isPlainObject(value)) return value;
    const watched = {};
    for (const [key, field] of Object.entries(value)) {
      let isNoted = false;
      const get = (): unknown => {
        if (!isNoted) this.#read.add(`${part}.${key}`);
        isNoted = true;
        return field;
      };
      Object.defineProperty(watched, key, { get, enumerable: true });
    }
    return watched as T;
  }
}

function isPlainObject(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
