import type { NetlinkChannel } from "./channel.ts";
import { errno, kernelError } from "./errno.ts";
import { attribute, findAttribute, zeroTerminated } from "./message.ts";

// @source linux/netfilter/nfnetlink.h NFNL_SUBSYS_IPSET, linux/netfilter/ipset/ip_set.h IPSET_CMD_LIST
const LIST = (6 << 8) | 7;
const ATTRIBUTE = { protocol: 1, name: 2, flags: 6, data: 7, elements: 24 } as const;
/** @source IPSET_PROTOCOL_MIN */
const PROTOCOL = 6;
/** Without the members. @source IPSET_FLAG_LIST_HEADER */
const HEADERS_ALONE = 4;
/** Numbers of attributes in network order, and those that hold others, are marked. */
const NET_ORDER = 0x4000;
const NFGENMSG = Buffer.from([2, 0, 0, 0]);

/**
 * Count the members of each set of ipset, whoever's, without listing them.
 *
 * Edges: empty where the kernel has no sets.
 * @throws {ProxyError} what the channel throws, and the kernel's refusal.
 */
export async function listSetSizes(channel: Pick<NetlinkChannel, "dump">): Promise<ReadonlyMap<string, number>> {
  const flags = Buffer.alloc(4);
  flags.writeUInt32BE(HEADERS_ALONE);
  const request = Buffer.concat([
    NFGENMSG,
    attribute(ATTRIBUTE.protocol, Buffer.from([PROTOCOL])),
    attribute(ATTRIBUTE.flags | NET_ORDER, flags),
  ]);
  const sizes = new Map<string, number>();
  const { errno: value } = await channel.dump(LIST, request, (_, payload) => {
    const name = findAttribute(payload, ATTRIBUTE.name, NFGENMSG.length);
    const data = findAttribute(payload, ATTRIBUTE.data, NFGENMSG.length);
    const elements = data === undefined ? undefined : findAttribute(data, ATTRIBUTE.elements);
    if (name !== undefined && elements !== undefined) sizes.set(zeroTerminated(name), elements.readUInt32BE());
  });
  if (value !== 0 && value !== errno("EINVAL") && value !== errno("ENOENT")) throw kernelError(value, "sets can't be counted");
  return sizes;
}
