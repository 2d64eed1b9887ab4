import type { NftElement, NftTable } from "@turnout/host";
import { elementComment, elementText, readingListing, readListing, verdictText } from "@turnout/host/nft";

/**
 * Read out of what `nft -j list table` printed what netlink gives of that table.
 * @throws {ProxyError} `tool_failed` when the text isn't a listing of nft.
 */
export function listedTable(text: string): NftTable {
  const { sets, chains } = readListing(text);
  const elementsOf = (listed: readonly unknown[]): readonly NftElement[] => readingListing(() => listed.map(elementOf));
  return { sets: new Map([...sets].map(([name, listed]) => [name, elementsOf(listed)])), chains };
}

function elementOf(listed: unknown): NftElement {
  // A map's is a pair.
  const [key, value] = Array.isArray(listed) ? (listed as readonly unknown[]) : [listed];
  return { key: elementText(key), value: value === undefined ? "" : valueText(value), comment: elementComment(key) };
}

function valueText(value: unknown): string {
  return typeof value === "object" && value !== null && !("concat" in value) ? verdictText(value) : elementText(value);
}
