import type { EndpointSlice, Node, Service } from "../model/api-objects.ts";
import type { Store } from "./store.ts";

/** The API objects of a store, as `KnownObjects` of those who explain packets. */
export interface StoredObjects {
  /** Every Service that counts. */
  services(): Iterable<Service>;
  /** The slices of the Service under `namespace/name`. */
  slices(serviceKey: string): ReadonlyMap<string, EndpointSlice>;
  /** Every Node that is known. */
  nodes(): Iterable<Node>;
}

/** Let others ask for the API objects of a store, as they are at that time. */
export function knownObjects(store: Store): StoredObjects {
  return {
    *services() {
      for (const key of store.serviceKeys()) {
        const service = store.service(key);
        if (service !== undefined) yield service;
      }
    },
    slices: (key) => store.slices(key),
    *nodes() {
      for (const name of store.nodeNames()) {
        const node = store.node(name);
        if (node !== undefined) yield node;
      }
    },
  };
}
