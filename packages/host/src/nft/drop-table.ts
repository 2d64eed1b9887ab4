import { ProxyError } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";
import type { OwnCommits } from "../watch/own-commits.ts";
import type { NftFamily } from "../nft-statement/syntax.ts";

/**
 * Remove a table, if it is there: over netlink, because nft reads all that it deletes, and other programs' sets, and crashes at those that it can't read.
 * @throws {ProxyError} what the kernel refused.
 */
export async function dropNftTable(
  { own, netlink }: { readonly own: OwnCommits; readonly netlink: Pick<Netlink, "deleteNftTable"> },
  family: NftFamily,
  table: string,
): Promise<void> {
  try {
    await own.during(1, () => netlink.deleteNftTable(family, table));
  } catch (error) {
    // A kernel without nf_tables, or without the family, has none of its tables.
    if (!ProxyError.is(error, "not_found") && !ProxyError.is(error, "host_unsupported")) throw error;
  }
}
