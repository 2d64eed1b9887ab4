import type { NetlinkChannel } from "./channel.ts";
import { errno, kernelError } from "./errno.ts";
import { consistentDump } from "./host-addresses.ts";
import { attribute, findAttribute, zeroEnded, zeroTerminated } from "./message.ts";
import { NFGENMSG_LENGTH, NFT_FAMILIES, NFT_SUBSYSTEM } from "./nft-changes.ts";

// @source linux/netfilter/nf_tables.h: NFT_MSG_GETTABLE, NFT_MSG_GETCHAIN, nft_table_attributes, nft_chain_attributes
const GETTABLE = (NFT_SUBSYSTEM << 8) | 1;
const GETCHAIN = (NFT_SUBSYSTEM << 8) | 4;
const TABLE_NAME = 1;
const CHAIN = { table: 1, name: 3 } as const;

/** Tables that iptables makes. */
export const IPTABLES_TABLES: ReadonlySet<string> = new Set(["raw", "mangle", "nat", "filter", "security"]);
/** Chains of which each of these tables has some. */
const BUILT_IN: readonly string[] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/** A table of nf_tables. */
export interface NftTableName {
  /** As nft names it, e.g. `inet`. */
  readonly family: string;
  readonly table: string;
  /** The nf_tables variant of iptables made it, and lists it. */
  readonly isIptables: boolean;
}

/**
 * List the tables of nf_tables.
 *
 * Shape: chains are asked for by their names, because to list them the kernel walks all of them again and again: 110,000 of an iptables proxy take a second.
 * Edges: empty where the kernel has no nf_tables.
 * @throws {ProxyError} what the channel throws, and the kernel's refusal.
 */
export async function listNftTables(channel: NetlinkChannel): Promise<readonly NftTableName[]> {
  const tables = await consistentDump(channel, GETTABLE, Buffer.alloc(NFGENMSG_LENGTH), "tables", parseTable, [errno("EINVAL")]);
  return await Promise.all(
    tables.map(async ({ number, table }) => {
      const family = NFT_FAMILIES.get(number) ?? `family ${number}`;
      const mayBe = (family === "ip" || family === "ip6") && IPTABLES_TABLES.has(table);
      return { family, table, isIptables: mayBe && (await hasBuiltIn(channel, number, table)) };
    }),
  );
}

function parseTable(payload: Buffer): { readonly number: number; readonly table: string } | undefined {
  const name = payload.length < NFGENMSG_LENGTH ? undefined : findAttribute(payload, TABLE_NAME, NFGENMSG_LENGTH);
  return name === undefined ? undefined : { number: payload.readUInt8(0), table: zeroTerminated(name) };
}

async function hasBuiltIn(channel: NetlinkChannel, family: number, table: string): Promise<boolean> {
  const request = (name: string): Buffer =>
    Buffer.concat([Buffer.of(family, 0, 0, 0), attribute(CHAIN.table, zeroEnded(table)), attribute(CHAIN.name, zeroEnded(name))]);
  const outcomes = await channel.requestMany(GETCHAIN, BUILT_IN.map(request));
  const refusal = outcomes.find((outcome) => outcome !== 0 && outcome !== errno("ENOENT"));
  if (refusal !== undefined) throw kernelError(refusal, "chains can't be listed", { object: table });
  return outcomes.includes(0);
}
