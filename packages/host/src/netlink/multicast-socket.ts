import { constants } from "node:os";
import { isMainThread } from "node:worker_threads";
import { ProxyError } from "@turnout/core";
import { errno, kernelError } from "./errno.ts";
import { loadLibc } from "./libc.ts";
import { isSupportedByteOrder } from "./message.ts";

// @source linux/socket.h, asm-generic/socket.h, asm-generic/fcntl.h, linux/netlink.h
const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const SO_RCVBUFFORCE = 33;
const SO_ATTACH_FILTER = 26;
const SOL_NETLINK = 270;
const NETLINK_ADD_MEMBERSHIP = 1;
const MSG_DONTWAIT_TRUNC = 0x40 | 0x20;
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

/** The calls to libc that a multicast socket is made of. */
interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Buffer, length: number): number;
  setsockopt(fd: number, level: number, name: number, value: Buffer, length: number): number;
  recv(fd: number, buffer: Buffer, length: number, flags: number): number;
  fcntl(fd: number, command: number, value: number): number;
  close(fd: number): number;
  errno(): number;
  /** Where a buffer is, as long as it lives. */
  address(buffer: Buffer): bigint;
}

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
 *
 * Not by the package `netlink`: its 0.3.0 aborts the process when a socket overruns (libuv reports POLLERR, and making
 * the error object for it throws in C++), and one large nftables commit is enough for that.
 * @throws {ProxyError} `host_unsupported` when koffi has no build for this machine, `permission_denied`, `tool_failed`.
 */
export function openMulticastSocket(
  protocol: number,
  groups: readonly number[],
  { bufferBytes = BUFFER_BYTES, ignoring }: { readonly bufferBytes?: number; readonly ignoring?: number } = {},
): MulticastSocket {
  if (!isSupportedByteOrder) throw new ProxyError("host_unsupported", "netlink needs a little-endian machine");
  const libc = declareLibc();
  const fd = check(libc, libc.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, protocol));
  try {
    const address = Buffer.alloc(12);
    address.writeUInt16LE(AF_NETLINK);
    check(libc, libc.bind(fd, address, address.length));
    // The forced size needs CAP_NET_ADMIN; without it the one that net.core.rmem_max allows must do.
    if (setOption(libc, fd, SOL_SOCKET, SO_RCVBUFFORCE, bufferBytes) < 0)
      check(libc, setOption(libc, fd, SOL_SOCKET, SO_RCVBUF, bufferBytes));
    if (ignoring !== undefined) ignorePort(libc, fd, ignoring);
    for (const group of groups) check(libc, setOption(libc, fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group));
  } catch (error) {
    libc.close(fd);
    throw error;
  }
  return listener(libc, fd);
}

function listener(libc: Libc, fd: number): MulticastSocket {
  // Not from Buffer's shared pool: C writes into it.
  const buffer = Buffer.allocUnsafeSlow(DATAGRAM_BYTES);
  let isOpen = true;
  let onSignal: (() => void) | undefined;
  return {
    receive(): Received {
      if (!isOpen) return "nothing";
      for (;;) {
        const length = libc.recv(fd, buffer, buffer.length, MSG_DONTWAIT_TRUNC);
        if (length >= 0) return length > buffer.length ? "lost" : buffer.subarray(0, length);
        const error = libc.errno();
        if (error === errno("EAGAIN")) return "nothing";
        if (error === errno("ENOBUFS")) return "lost";
        if (error !== errno("EINTR")) throw kernelError(error, "netlink notifications can't be read");
      }
    },
    onArrival(ring): boolean {
      // Node hands signals to its main thread alone.
      if (!isOpen || onSignal !== undefined || !isMainThread || !signalArrivals(libc, fd)) return false;
      onSignal = ring;
      process.on(ARRIVAL, ring);
      return true;
    },
    close(): void {
      if (isOpen) libc.close(fd);
      isOpen = false;
      if (onSignal !== undefined) process.off(ARRIVAL, onSignal);
      onSignal = undefined;
    },
  };
}

/** Have the kernel send this process a signal when something comes or is lost; tells whether it will. */
function signalArrivals(libc: Libc, fd: number): boolean {
  const flags = libc.fcntl(fd, F_GETFL, 0);
  if (flags < 0 || libc.fcntl(fd, F_SETOWN, process.pid) < 0) return false;
  if (libc.fcntl(fd, F_SETSIG, constants.signals[ARRIVAL]) < 0) return false;
  return libc.fcntl(fd, F_SETFL, flags | O_ASYNC) >= 0;
}

/**
 * Have the kernel leave out the datagrams whose first message is of a port: all messages of one are of the same transaction.
 * @source linux/filter.h struct sock_filter (code, jt, jf, k) and sock_fprog; a filter loads words in network order
 */
function ignorePort(libc: Libc, fd: number, port: number): void {
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
  head.writeBigUInt64LE(libc.address(program), 8);
  const result = libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, head, head.length);
  // The kernel has read it: only its address was in use until here.
  program.fill(0);
  check(libc, result);
}

function setOption(libc: Libc, fd: number, level: number, name: number, value: number): number {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return libc.setsockopt(fd, level, name, bytes, bytes.length);
}

function check(libc: Libc, result: number): number {
  if (result >= 0) return result;
  throw kernelError(libc.errno(), "netlink notifications can't be subscribed to");
}

function declareLibc(): Libc {
  const { koffi, libc } = loadLibc();
  return {
    socket: libc.func("int socket(int domain, int type, int protocol)"),
    bind: libc.func("int bind(int fd, const void *address, uint32_t length)"),
    setsockopt: libc.func("int setsockopt(int fd, int level, int name, const void *value, uint32_t length)"),
    recv: libc.func("intptr_t recv(int fd, void *buffer, size_t length, int flags)"),
    fcntl: libc.func("int fcntl(int fd, int command, long value)"),
    close: libc.func("int close(int fd)"),
    errno: () => koffi.errno(),
    address: (buffer) => koffi.address(buffer),
  };
}
