import type { ProxyError } from "@turnout/core";
import { errno, kernelError } from "../errno.ts";
import { encodeNftBatch, encodeTableDeletion } from "./nft-batch.ts";
import type { NftBatch } from "./nft-batch.ts";
import type { NftElements } from "../../nft-statement/nft-statement.ts";
import type { Refused, WriteChannel } from "../write-channel.ts";
import type { NftFamily } from "../../nft-statement/syntax.ts";

/** What a refusal mostly comes of. */
const HINTS: ReadonlyMap<number, string> = new Map([
  [errno("ENOENT"), "another program removed part of the table; it is compared and repaired"],
  [errno("EEXIST"), "another program added to the table; it is compared and repaired"],
  [errno("ENOMEM"), "free memory"],
]);

/**
 * Encode a transaction of elements now, and send it when the function that comes back is called: the kernel can work at another one meanwhile.
 *
 * Edges: all of it takes effect or nothing. An element that is there as it should be can be added again; one that isn't there can't be deleted.
 * @throws {ProxyError} from that function: what the kernel refused, `not_found`, `already_exists`, `permission_denied`, `tool_failed`.
 */
export function prepareNftWrite(channel: () => Pick<WriteChannel, "send">, statements: readonly NftElements[]): () => Promise<void> {
  const batch = encodeNftBatch(statements);
  return async () => {
    const refused = await channel().send(batch);
    const [first] = refused;
    if (first !== undefined) throw refusal(first, batch);
  };
}

/** Remove a table of nf_tables with everything in it. @throws {ProxyError} `not_found` where it isn't there; what else the kernel refused. */
export async function deleteNftTable(channel: () => Pick<WriteChannel, "send">, family: NftFamily, table: string): Promise<void> {
  const [first] = await channel().send(encodeTableDeletion(family, table));
  if (first !== undefined) throw kernelError(first.errno, "a table can't be removed", { object: `table ${family} ${table}` });
}

function refusal({ sequence, errno: number }: Refused, { statements }: NftBatch): ProxyError {
  const statement = statements[sequence];
  const hint = HINTS.get(number);
  return kernelError(number, "the kernel could not apply a transaction", {
    ...(statement === undefined ? {} : { object: `${statement.verb} element ${statement.family} ${statement.table} ${statement.set}` }),
    ...(hint === undefined ? {} : { hint }),
  });
}
