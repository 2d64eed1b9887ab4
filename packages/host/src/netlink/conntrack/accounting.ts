import { ProxyError } from "@turnout/core";
import type { NetlinkChannel } from "../channel.ts";
import { errno, kernelError } from "../errno.ts";
import { attribute, findAttribute, zeroEnded } from "../message.ts";

// @source linux/netfilter/nfnetlink.h NFNL_SUBSYS_ACCT, nfnetlink_acct.h
const SUBSYSTEM = 7;
const MESSAGE = { create: SUBSYSTEM << 8, get: (SUBSYSTEM << 8) | 1, delete: (SUBSYSTEM << 8) | 3 } as const;
const ATTRIBUTE = { name: 1, packets: 2 } as const;
const NFGENMSG_LENGTH = 4;
const NLM_F_CREATE = 0x400;
/** Longest name, without the zero byte at its end. */
const NAME_MAX = 31;

/** The part of a channel that counters use. */
export type AccountingChannel = Pick<NetlinkChannel, "request">;

/**
 * Read how many packets a named counter of the kernel has counted (`nfacct`, which rules name with `-m nfacct`).
 *
 * Edges: undefined where there is no counter of that name.
 * @throws {ProxyError} `host_unsupported` where the kernel has no nfnetlink_acct; what the channel throws.
 */
export async function readCounter(channel: AccountingChannel, name: string): Promise<number | undefined> {
  let packets: number | undefined;
  const outcome = await channel.request(MESSAGE.get, request(name), (_, payload) => {
    const bytes = findAttribute(payload, ATTRIBUTE.packets, NFGENMSG_LENGTH);
    if (bytes !== undefined) packets = Number(bytes.readBigUInt64BE());
  });
  if (outcome === errno("ENOENT")) return undefined;
  check(outcome, name, "a packet counter can't be read");
  return packets;
}

/** Make a named counter, unless there is one. @throws {ProxyError} as {@link readCounter}, `invalid_object` for a name over 31 characters. */
export async function createCounter(channel: AccountingChannel, name: string): Promise<void> {
  const outcome = await channel.request(MESSAGE.create, request(name), undefined, NLM_F_CREATE);
  // The kernel says EBUSY for a counter that is there.
  if (outcome !== errno("EBUSY") && outcome !== errno("EEXIST")) check(outcome, name, "a packet counter can't be made");
}

/** Delete a named counter, unless a rule uses it or there is none. @throws {ProxyError} as {@link readCounter}. */
export async function deleteCounter(channel: AccountingChannel, name: string): Promise<void> {
  const outcome = await channel.request(MESSAGE.delete, request(name));
  if (outcome !== errno("EBUSY") && outcome !== errno("ENOENT")) check(outcome, name, "a packet counter can't be deleted");
}

function request(name: string): Buffer {
  if (name.length === 0 || name.length > NAME_MAX)
    throw new ProxyError("invalid_object", `a counter's name has 1 to ${NAME_MAX} characters`, { object: JSON.stringify(name) });
  return Buffer.concat([Buffer.alloc(NFGENMSG_LENGTH), attribute(ATTRIBUTE.name, zeroEnded(name))]);
}

function check(outcome: number, name: string, what: string): void {
  // EINVAL is how nfnetlink says that a subsystem isn't there.
  if (outcome === errno("EINVAL"))
    throw new ProxyError("host_unsupported", "this kernel has no nfnetlink_acct", { hint: "load it: modprobe xt_nfacct" });
  if (outcome !== 0) throw kernelError(outcome, what, { object: name });
}
