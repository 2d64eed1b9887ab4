import { objectId } from "@turnout/core/backend";
import type { CountName, Counts } from "@turnout/core/backend";
import type { NftElement, NftTableSink } from "@turnout/host";
import { COUNT_SETS } from "./count-sets.ts";
import type { CountSet } from "./count-sets.ts";

/** Takes what the sets of a table counted, and nothing else of it. */
export class CountedSets implements NftTableSink {
  /** By set and key: a set that packets write to while it is read may tell of an element twice. */
  readonly #elements = new Map<CountSet, Map<string, NftElement>>();

  set(name: string): ((element: NftElement) => void) | undefined {
    if (!(name in COUNT_SETS)) return undefined;
    const elements = new Map<string, NftElement>();
    this.#elements.set(name as CountSet, elements);
    return (element) => void elements.set(element.key, element);
  }

  chain(): void {
    // Nothing is counted there.
  }

  /**
   * What was counted for each destination, by its object.
   *
   * Shape: `isKnown` tells whether there is an object of an identity: what came for no address of a Service came for a node port.
   */
  counts(isKnown: (object: string) => boolean): ReadonlyMap<string, Counts> {
    const found = new Map<string, Partial<Record<CountName, number>>>();
    for (const [set, elements] of this.#elements) {
      const { count, unit } = COUNT_SETS[set];
      for (const { key, counter } of elements.values()) {
        const service = objectId({ kind: "service", key, value: "" });
        const port = key.slice(key.indexOf(" . ") + 3);
        const id = isKnown(service) ? service : objectId({ kind: "nodeport", key: port, value: "" });
        // Of a destination that is gone; it is forgotten after a day.
        if (!isKnown(id)) continue;
        const counts = found.get(id) ?? {};
        // A node port is asked for at several addresses.
        counts[count] = (counts[count] ?? 0) + (counter?.[unit] ?? 0);
        found.set(id, counts);
      }
    }
    return found;
  }
}
