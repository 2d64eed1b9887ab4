import type { IPFamily } from "@turnout/core";
import { errno, kernelError } from "./errno.ts";
import { readSocketOption } from "./socket.ts";

/** The same number for IPv6. @source linux/netfilter_ipv4/ip_tables.h IPT_SO_GET_INFO */
const GET_INFO = 64;
/** Both families have the same. @source struct ipt_getinfo */
const INFO = { bytes: 84, name: 32, offsets: [36, 76], entries: 76, size: 80 } as const;

/** What the kernel tells of a table of legacy iptables in one call, however many rules it has. */
export interface LegacyTableInfo {
  /** Rules, with policies and what chains begin with. */
  readonly entries: number;
  readonly bytes: number;
  /** Where each of the kernel's chains begins and ends. */
  readonly offsets: readonly number[];
}

/**
 * Ask for a table of legacy iptables that is known to be there: asking makes one that isn't. Takes some microseconds.
 *
 * Edges: undefined where the kernel has no such table, nor any.
 * @throws {ProxyError} `permission_denied` without CAP_NET_ADMIN, `host_unsupported`, `tool_failed`.
 */
export function legacyTableInfo(family: IPFamily, table: string): LegacyTableInfo | undefined {
  const info = Buffer.alloc(INFO.bytes);
  info.write(table, 0, INFO.name - 1, "latin1");
  const error = readSocketOption(family, GET_INFO, info);
  if (error === errno("ENOENT") || error === errno("ENOPROTOOPT")) return undefined;
  if (error !== 0) throw kernelError(error, "a table of legacy iptables can't be asked for", { object: table });
  const [from, to] = INFO.offsets;
  const offsets = Array.from({ length: (to - from) / 4 }, (_, index) => info.readUInt32LE(from + 4 * index));
  return { entries: info.readUInt32LE(INFO.entries), bytes: info.readUInt32LE(INFO.size), offsets };
}
