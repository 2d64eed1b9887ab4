import { objectId } from "@turnout/core/backend";
import type { CountName, Counts } from "@turnout/core/backend";
import { elementParts, readingListing, readListing } from "@turnout/host/nft";
import { COUNT_SETS } from "./count-sets.ts";
import type { CountSet } from "./count-sets.ts";

/**
 * Read what the sets counted for each destination, by its object.
 *
 * Shape: `listings` are what nft printed of each set; `isKnown` tells whether there is an object of an identity: what came for no address of a
 * Service came for a node port.
 * @throws {ProxyError} `tool_failed` when a text isn't a listing of nft.
 */
export function parseCounts(
  listings: Readonly<Record<CountSet, string>>,
  isKnown: (object: string) => boolean,
): ReadonlyMap<string, Counts> {
  const found = new Map<string, Partial<Record<CountName, number>>>();
  for (const [set, count] of Object.entries(COUNT_SETS)) {
    const listing = readListing(listings[set as CountSet]);
    readingListing(() => {
      for (const element of listing.sets.get(set) ?? []) {
        const [address = "", protocol = "", port = ""] = elementParts(element);
        const key = `${address} . ${protocol} . ${port}`;
        const service = objectId({ kind: "service", key, value: "" });
        const id = isKnown(service) ? service : objectId({ kind: "nodeport", key: `${protocol} . ${port}`, value: "" });
        const counts = found.get(id) ?? {};
        // A node port is asked for at several addresses.
        counts[count] = (counts[count] ?? 0) + packetsOf(element);
        found.set(id, counts);
      }
    });
  }
  return found;
}

function packetsOf(element: unknown): number {
  const { elem } = element as { readonly elem?: { readonly counter?: { readonly packets?: unknown } } };
  return Number(elem?.counter?.packets ?? 0);
}
