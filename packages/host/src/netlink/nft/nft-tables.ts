import type { NetlinkChannel } from "../channel.ts";
import { errno, kernelError } from "../errno.ts";
import { consistentDump } from "../host-addresses.ts";
import { attribute, findAttribute, zeroEnded, zeroTerminated } from "../message.ts";
import { NFGENMSG_LENGTH, NFT_FAMILIES, NFT_SUBSYSTEM } from "./nft-changes.ts";

// @source linux/netfilter/nf_tables.h: NFT_MSG_GETTABLE, NFT_MSG_GETCHAIN, nft_table_attributes, nft_chain_attributes
const GETTABLE = (NFT_SUBSYSTEM << 8) | 1;
const GETCHAIN = (NFT_SUBSYSTEM << 8) | 4;
const TABLE = { name: 1, use: 3 } as const;
const CHAIN = { table: 1, name: 3 } as const;

/** Tables that iptables makes. */
export const IPTABLES_TABLES: ReadonlySet<string> = new Set(["raw", "mangle", "nat", "filter", "security"]);
/** Chains of which each of these tables has some. */
const BUILT_IN: readonly string[] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
/** Chains of kubelet and of service proxies that none calls: they say that somebody is there. */
const FINGERPRINTS: readonly string[] = ["KUBE-PROXY-CANARY", "KUBE-KUBELET-CANARY", "KUBE-IPTABLES-HINT"];

/** A table of nf_tables. */
export interface NftTableName {
  /** As nft names it, e.g. `inet`. */
  readonly family: string;
  readonly table: string;
  /** The nf_tables variant of iptables made it, and lists it. */
  readonly isIptables: boolean;
  /** Of iptables' own chains, and of those that are known to be called by none, the ones that are there; empty where iptables has no table of this name. */
  readonly chains: readonly string[];
  /** How many chains, sets and objects it has. */
  readonly size: number;
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
    tables.map(async ({ number, table, size }) => {
      const family = NFT_FAMILIES.get(number) ?? `family ${number}`;
      const mayBe = (family === "ip" || family === "ip6") && IPTABLES_TABLES.has(table);
      const chains = mayBe ? await chainsThere(channel, number, table) : [];
      return { family, table, isIptables: chains.some((chain) => BUILT_IN.includes(chain)), chains, size };
    }),
  );
}

function parseTable(payload: Buffer): { readonly number: number; readonly table: string; readonly size: number } | undefined {
  const name = payload.length < NFGENMSG_LENGTH ? undefined : findAttribute(payload, TABLE.name, NFGENMSG_LENGTH);
  if (name === undefined) return undefined;
  const size = findAttribute(payload, TABLE.use, NFGENMSG_LENGTH)?.readUInt32BE(0) ?? 0;
  return { number: payload.readUInt8(0), table: zeroTerminated(name), size };
}

async function chainsThere(channel: NetlinkChannel, family: number, table: string): Promise<readonly string[]> {
  const request = (name: string): Buffer =>
    Buffer.concat([Buffer.of(family, 0, 0, 0), attribute(CHAIN.table, zeroEnded(table)), attribute(CHAIN.name, zeroEnded(name))]);
  const names = [...BUILT_IN, ...FINGERPRINTS];
  const outcomes = await channel.requestMany(GETCHAIN, names.map(request));
  const refusal = outcomes.find((outcome) => outcome !== 0 && outcome !== errno("ENOENT"));
  if (refusal !== undefined) throw kernelError(refusal, "chains can't be listed", { object: table });
  return names.filter((_, index) => outcomes[index] === 0);
}
