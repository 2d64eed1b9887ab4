import { createRequire } from "node:module";
import { ProxyError } from "@turnout/core";
import type * as netlinkPackage from "netlink/dist/raw.js";
import type { RawNetlinkSocket } from "netlink";
import { isSupportedByteOrder } from "./message.ts";

/** Netlink protocols Turnout speaks. @source linux/netlink.h */
export const NETLINK = { route: 0, sockDiag: 4, netfilter: 12, generic: 16 } as const;

/** Wanted socket buffer in bytes; the kernel caps it at net.core.rmem_max without saying so. */
const BUFFER_BYTES = 4 << 20;

const load = createRequire(import.meta.url);

/**
 * Open a netlink socket in the network namespace of this process.
 *
 * The package `netlink` is used for its raw layer only: its own request layer keeps whole dumps in memory, garbles two
 * dumps at once and gives errors as text. The native part is loaded on first use, so that a platform without it can
 * still run everything else.
 * @throws {ProxyError} `host_unsupported` when the native part is missing, `permission_denied`, `tool_failed`.
 */
export function openSocket(protocol: number): RawNetlinkSocket {
  if (!isSupportedByteOrder) throw new ProxyError("host_unsupported", "netlink needs a little-endian machine");
  const { RawNetlinkSocket: Socket } = loadPackage();
  try {
    return new Socket(protocol, { recvBufferSize: BUFFER_BYTES, sendBufferSize: BUFFER_BYTES });
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "a netlink socket could not be opened");
  }
}

function loadPackage(): typeof netlinkPackage {
  try {
    // The raw layer alone: the package's index also loads half a megabyte of structures of nl80211 and rtnetlink, which nothing here uses.
    return load("netlink/dist/raw.js") as typeof netlinkPackage;
  } catch (error) {
    const hint = `the npm package netlink has no binary for ${process.platform}-${process.arch}`;
    throw new ProxyError("host_unsupported", "the netlink addon could not be loaded", { hint, cause: error });
  }
}

/**
 * Close a socket on a later turn of the event loop.
 *
 * netlink 0.3.0 crashes the process when it is closed inside one of its own callbacks (and promise continuations run
 * inside them too): after the callback its poll handler still uses the watcher that closing has freed.
 */
export function closeLater(socket: RawNetlinkSocket): void {
  setImmediate(() => socket.close());
}
