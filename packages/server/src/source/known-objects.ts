import type { KnownObjects, Store } from "@turnout/core";

/** Give the API objects of a store as those who explain packets ask for them. */
export function knownObjects(store: Store): KnownObjects {
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
