import type { EbpfMap } from "../elements.ts";
import { decodeAddress, STRUCTS } from "../layout.ts";

/** Where an element of a map has an address: in its key or its value, and after how many bytes. */
const PLACES: Readonly<Partial<Record<EbpfMap, readonly ["key" | "value", number]>>> = {
  services: ["key", STRUCTS.destination.fields.address[0]],
  endpoints: ["value", STRUCTS.endpoint.fields.address[0]],
  node_addresses: ["key", 0],
  primaries: ["value", 0],
};

/** The addresses that an element of a map names, canonical; empty for a map of another program. */
export function addressesIn(map: string, key: Uint8Array, value: Uint8Array): readonly string[] {
  const place = PLACES[map as EbpfMap];
  if (place === undefined) return [];
  const bytes = place[0] === "key" ? key : value;
  return [decodeAddress(Buffer.from(bytes.slice(place[1], place[1] + 16)))];
}
