import { constants } from "node:os";
import { isMainThread } from "node:worker_threads";
import { errno, kernelError } from "./errno.ts";
import { addressOf, NetlinkSocket, SOL } from "./socket.ts";

// @source linux/socket.h, asm-generic/socket.h, asm-generic/fcntl.h, linux/netlink.h
const SO_RCVBUF = 8;
const SO_RCVBUFFORCE = 33;
const SO_ATTACH_FILTER = 26;
const NETLINK_ADD_MEMBERSHIP = 1;
const MSG_TRUNC = 0x20;
const F_GETFL = 3;
const F_SETFL = 4;
const F_SETOWN = 8;
const F_SETSIG = 10;
const O_ASYNC = 0o20000;
/** Instead of SIGIO, which ends a process that does not expect it; this one is ignored where nobody listens. */
const ARRIVAL = "SIGURG";

/** Room for what happens between two looks; a commit of 100,000 set elements takes about 10 MB. */
const BUFFER_BYTES = 32 << 20;
/** Longer than any notification. */
const DATAGRAM_BYTES = 64 << 10;

/** What one look brought: a datagram (valid until the next look), nothing, or word that the kernel dropped some. */
export type Received = Buffer | "nothing" | "lost";

/** A netlink socket that only listens, and only gives when it is asked. */
export interface MulticastSocket {
  /** Take the next datagram without waiting. @throws {ProxyError} `tool_failed`. */
  receive(): Received;
  /**
   * Have the listener called, once per socket, whenever there may be something to take, and sometimes when there is nothing.
   *
   * Edges: false where the kernel or this thread can't be told so; then it is never called. It does not keep the process alive.
   */
  onArrival(listener: () => void): boolean;
  /** Close it; more than once is fine. */
  close(): void;
}

/**
 * Listen to multicast groups of a netlink protocol, in the network namespace of this process.
 *
 * Units: `bufferBytes` is how much the kernel may keep between two looks. `ignoring` is the port of a socket, see {@link WriteChannel.port}: what was
 * done over it is not told here.
 * Edges: it does not keep the process alive.
 * @throws {ProxyError} `host_unsupported` when koffi has no build for this machine, `permission_denied`, `tool_failed`.
 */
export function openMulticastSocket(
  protocol: number,
  groups: readonly number[],
  { bufferBytes = BUFFER_BYTES, ignoring }: { readonly bufferBytes?: number; readonly ignoring?: number } = {},
): MulticastSocket {
  const socket = new NetlinkSocket(protocol);
  try {
    socket.bind();
    // The forced size needs CAP_NET_ADMIN; without it the one that net.core.rmem_max allows must do.
    if (socket.setOption(SOL.socket, SO_RCVBUFFORCE, bufferBytes) !== 0) check(socket.setOption(SOL.socket, SO_RCVBUF, bufferBytes));
    if (ignoring !== undefined) ignorePort(socket, ignoring);
    for (const group of groups) check(socket.setOption(SOL.netlink, NETLINK_ADD_MEMBERSHIP, group));
  } catch (error) {
    socket.close();
    throw error;
  }
  return listener(socket);
}

function listener(socket: NetlinkSocket): MulticastSocket {
  // Not from Buffer's shared pool: C writes into it.
  const buffer = Buffer.allocUnsafeSlow(DATAGRAM_BYTES);
  let isOpen = true;
  let onSignal: (() => void) | undefined;
  return {
    receive(): Received {
      const received = isOpen ? socket.receiveNow(buffer, MSG_TRUNC) : undefined;
      if (received === undefined) return "nothing";
      if ("length" in received) return received.length > buffer.length ? "lost" : buffer.subarray(0, received.length);
      if (received.error === errno("ENOBUFS")) return "lost";
      throw kernelError(received.error, "netlink notifications can't be read");
    },
    onArrival(ring): boolean {
      // Node hands signals to its main thread alone.
      if (!isOpen || onSignal !== undefined || !isMainThread || !signalArrivals(socket)) return false;
      onSignal = ring;
      process.on(ARRIVAL, ring);
      return true;
    },
    close(): void {
      if (isOpen) socket.close();
      isOpen = false;
      if (onSignal !== undefined) process.off(ARRIVAL, onSignal);
      onSignal = undefined;
    },
  };
}

/** Have the kernel send this process a signal when something comes or is lost; tells whether it will. */
function signalArrivals(socket: NetlinkSocket): boolean {
  const flags = socket.control(F_GETFL, 0);
  if (flags < 0 || socket.control(F_SETOWN, process.pid) < 0) return false;
  if (socket.control(F_SETSIG, constants.signals[ARRIVAL]) < 0) return false;
  return socket.control(F_SETFL, flags | O_ASYNC) >= 0;
}

/**
 * Have the kernel leave out the datagrams whose first message is of a port: all messages of one are of the same transaction.
 * @source linux/filter.h struct sock_filter (code, jt, jf, k) and sock_fprog; a filter loads words in network order
 */
function ignorePort(socket: NetlinkSocket, port: number): void {
  const PORT_OFFSET = 12;
  const swapped = Buffer.alloc(4);
  swapped.writeUInt32LE(port >>> 0);
  const instructions = [
    [0x20, 0, 0, PORT_OFFSET], // load the word there
    [0x15, 0, 1, swapped.readUInt32BE(0)], // equal: go on, otherwise leave one out
    [0x06, 0, 0, 0], // nothing of it
    [0x06, 0, 0, 0xffffffff], // all of it
  ] as const;
  const program = Buffer.allocUnsafeSlow(8 * instructions.length);
  for (const [index, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    program.writeUInt16LE(code, 8 * index);
    program.writeUInt8(ifTrue, 8 * index + 2);
    program.writeUInt8(ifFalse, 8 * index + 3);
    program.writeUInt32LE(value, 8 * index + 4);
  }
  const head = Buffer.alloc(16);
  head.writeUInt16LE(instructions.length, 0);
  head.writeBigUInt64LE(addressOf(program), 8);
  const result = socket.setOption(SOL.socket, SO_ATTACH_FILTER, head);
  // The kernel has read it: only its address was in use until here.
  program.fill(0);
  check(result);
}

function check(error: number): void {
  if (error !== 0) throw kernelError(error, "netlink notifications can't be subscribed to");
}
