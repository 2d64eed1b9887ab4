import { objectId } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import type { LinuxWorld, NftElementQuestion, NftPartsQuestion } from "@turnout/host";
import { slotsFor } from "./chains.ts";
import { layoutChain, NFT_FAMILY, TABLE } from "./names.ts";
import {
  endpointLocation,
  endpointMap,
  FIRST_PLACE,
  keyParts,
  largePoolLocation,
  POOLS,
  servingLocation,
  SMALL_POOL_MAX,
  VERDICT_MAPS,
} from "./objects.ts";
import type { NftObject, ListLocation } from "./objects.ts";
import { objectsInParts } from "./observe.ts";
import { BASE_CHAINS } from "./skeleton.ts";

/**
 * Read what the kernel holds under the identities of objects, element by element.
 *
 * Edges: of a list so many places are looked at as a packet may be sent to, and some behind them.
 */
export async function lookupObjects(
  { netlink }: Pick<LinuxWorld, "netlink">,
  family: IPFamily,
  objects: readonly NftObject[],
  isCounting: boolean,
): Promise<ReadonlyMap<string, NftObject>> {
  const parts = await netlink.nftParts(NFT_FAMILY[family], TABLE, questionFor(objects));
  if (parts === undefined) return new Map();
  const found = objectsInParts(parts, isCounting).objects;
  return new Map(
    objects.flatMap((object) => {
      const held = found.get(objectId(object));
      return held === undefined ? [] : [[objectId(object), held] as const];
    }),
  );
}

/** What has to be asked for objects, in a table of whichever layout. Pure. */
export function questionFor(objects: readonly NftObject[]): NftPartsQuestion {
  const chains = new Set([...[true, false].map(layoutChain), ...Object.keys(BASE_CHAINS)]);
  const elements: NftElementQuestion[] = [];
  for (const object of objects) {
    if (object.kind === "chain") chains.add(object.key);
    else elements.push(...elementsOf(object));
  }
  return { elements, chains: [...chains] };
}

function elementsOf(object: Exclude<NftObject, { readonly kind: "chain" }>): readonly NftElementQuestion[] {
  switch (object.kind) {
    case "cluster-ips":
    case "nodeport-ips":
    case "hairpin":
      return [{ set: object.kind, key: keyIn(object.kind, object.key) }];
    case "service":
    case "nodeport": {
      const protocol = object.key.split(" . ")[object.kind === "service" ? 1 : 0] ?? "";
      const map = endpointMap(object.kind, protocol);
      const places = POOLS.flatMap(({ from }) => placesOf({ ...endpointLocation(object.kind, object.key, from), map }, 2 * SMALL_POOL_MAX));
      return [{ set: VERDICT_MAPS[object.kind], key: keyIn(VERDICT_MAPS[object.kind], object.key) }, ...places];
    }
    case "large-pool":
      return placesOf(largePoolLocation(object), 2 * slotsFor(object.value.length));
    case "affinity-endpoints":
      return Array.from({ length: object.value.length + SMALL_POOL_MAX }, (_, index) => ({
        set: object.key,
        key: keyIn(object.key, String(FIRST_PLACE + index)),
      }));
    case "affinity-serving": {
      const { map, id } = servingLocation(object);
      return [{ set: map, key: keyIn(map, id) }];
    }
    case "map":
    case "table":
      return [];
  }
}

/** The first places of a list of endpoints. */
function placesOf({ map, key, from }: ListLocation, count: number): readonly NftElementQuestion[] {
  return Array.from({ length: count }, (_, index) => ({
    set: map,
    key: keyIn(map, `${key} . ${from + index}`),
  }));
}

/** An element by its key, all of it or without its last part. */
function keyIn(set: string, text: string): NftElementQuestion["key"] {
  const kinds = keyParts(set);
  return text.split(" . ").map((part, index) => ({ is: kinds[index] ?? "number", text: part }));
}
