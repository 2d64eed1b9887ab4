import type { NetlinkChannel } from "../channel.ts";
import { errno } from "../errno.ts";
import { consistentDump } from "../host-addresses.ts";
import { findAttribute, zeroTerminated } from "../message.ts";
import { NFGENMSG_LENGTH, NFT_FAMILIES, NFT_SUBSYSTEM } from "./nft-changes.ts";

// @source linux/netfilter/nf_tables.h: NFT_MSG_GETCHAIN, nft_chain_attributes, nft_hook_attributes
const GETCHAIN = (NFT_SUBSYSTEM << 8) | 4;
const CHAIN = { table: 1, name: 3, hook: 4, policy: 5, type: 7 } as const;
const HOOK = { number: 1, priority: 2, device: 3 } as const;
/** @source linux/netfilter.h nf_inet_hooks; netdev and arp have numbers of their own, and `ingress` is what a netdev chain mostly is. */
const INET_HOOKS = ["prerouting", "input", "forward", "output", "postrouting", "ingress"] as const;
const NETDEV_HOOKS = ["ingress", "egress"] as const;
const ARP_HOOKS = ["input", "output", "forward"] as const;

/** Where the kernel calls a chain in. */
export interface NftHook {
  /** E.g. `filter`, `nat`. */
  readonly type: string;
  /** E.g. `prerouting`. */
  readonly hook: string;
  /** Lower ones are called first. */
  readonly priority: number;
  /** What becomes of packets that no rule decides. */
  readonly policy: "accept" | "drop";
}

/** A chain of nf_tables, iptables' among them, without its rules. */
export interface NftChain {
  /** As nft names it, e.g. `inet`. */
  readonly family: string;
  readonly table: string;
  readonly name: string;
  /** Undefined: only other chains call it. */
  readonly base: NftHook | undefined;
}

/** Read an NFT_MSG_NEWCHAIN payload; undefined for anything else. */
export function parseChain(payload: Buffer): NftChain | undefined {
  if (payload.length < NFGENMSG_LENGTH) return undefined;
  const table = findAttribute(payload, CHAIN.table, NFGENMSG_LENGTH);
  const name = findAttribute(payload, CHAIN.name, NFGENMSG_LENGTH);
  if (table === undefined || name === undefined) return undefined;
  const number = payload.readUInt8(0);
  const family = NFT_FAMILIES.get(number) ?? `family ${number}`;
  return { family, table: zeroTerminated(table), name: zeroTerminated(name), base: baseOf(payload, family) };
}

function baseOf(payload: Buffer, family: string): NftHook | undefined {
  const hook = findAttribute(payload, CHAIN.hook, NFGENMSG_LENGTH);
  const number = hook === undefined ? undefined : findAttribute(hook, HOOK.number)?.readUInt32BE(0);
  if (hook === undefined || number === undefined) return undefined;
  const type = findAttribute(payload, CHAIN.type, NFGENMSG_LENGTH);
  const names = family === "netdev" ? NETDEV_HOOKS : family === "arp" ? ARP_HOOKS : INET_HOOKS;
  return {
    type: type === undefined ? "filter" : zeroTerminated(type),
    hook: names[number] ?? `hook ${number}`,
    priority: findAttribute(hook, HOOK.priority)?.readInt32BE(0) ?? 0,
    policy: findAttribute(payload, CHAIN.policy, NFGENMSG_LENGTH)?.readUInt32BE(0) === 0 ? "drop" : "accept",
  };
}

/** Where the kernel calls a chain in, in the words that make such a chain: `type nat hook prerouting priority -100`. */
export function hookText(base: NftHook | undefined): string | undefined {
  return base === undefined ? undefined : `type ${base.type} hook ${base.hook} priority ${base.priority}`;
}

/**
 * List all chains of nf_tables without their rules: 40,000 of them in a fraction of the time that nft takes.
 *
 * Shape: over a channel of its own, because the kernel walks all chains from the beginning for each piece of the answer, and pieces of a
 * {@link NetlinkChannel} are as long as there are.
 * Edges: empty where the kernel has no nf_tables.
 * @throws {ProxyError} what the channel throws, and the kernel's refusal.
 */
export async function listChains(openChannel: () => NetlinkChannel): Promise<readonly NftChain[]> {
  const channel = openChannel();
  try {
    return await consistentDump(channel, GETCHAIN, Buffer.alloc(NFGENMSG_LENGTH), "chains", parseChain, [errno("EINVAL"), errno("ENOENT")]);
  } finally {
    channel.close();
  }
}
