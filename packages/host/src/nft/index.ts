/**
 * The program nft: transactions and listings, its errors, how long to wait for it.
 *
 * @packageDocumentation
 */
export { tryNftWrite } from "./crash.ts";
export { dropNftTable } from "./drop-table.ts";
export { NftSession } from "./nft-session.ts";
export { readingListing, readNftTable } from "./read-rules.ts";
export { readShownTable, textsByHandle } from "./shown-table.ts";
export { calledAt, DSTNAT, inOrder, SRCNAT } from "./hook-order.ts";
export { nftError } from "./errors.ts";
export type { NamedSets } from "./named-sets.ts";
export { readNftRule } from "./read-rules.ts";
