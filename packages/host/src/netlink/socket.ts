import { closeSync } from "node:fs";
import { ProxyError } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { errno, kernelError } from "./errno.ts";
import { loadLibc } from "./libc.ts";
import { isSupportedByteOrder } from "./message.ts";

/** Netlink protocols Turnout speaks. @source linux/netlink.h */
export const NETLINK = { route: 0, sockDiag: 4, netfilter: 12, generic: 16 } as const;

// @source linux/socket.h, asm-generic/socket.h, linux/netlink.h
const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const MSG_DONTWAIT = 0x40;

/** Levels of socket options. */
export const SOL = { socket: 1, netlink: 270 } as const;

/** What a call in another thread ends with: what koffi complains of, and what the call returned. */
type Done = (error: unknown, result: number) => void;

/** Calls of libc about sockets. */
interface Calls {
  socket(family: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array, length: number): number;
  connect(fd: number, address: Uint8Array, length: number): number;
  getsockname(fd: number, address: Uint8Array, length: Uint32Array): number;
  setsockopt(fd: number, level: number, name: number, value: Uint8Array, length: number): number;
  getsockopt(fd: number, level: number, name: number, value: Uint8Array, length: Uint32Array): number;
  send(fd: number, bytes: Uint8Array, length: number, flags: number): number;
  recv(fd: number, into: Uint8Array, length: number, flags: number): number;
  fcntl(fd: number, command: number, value: number): number;
  sendInThread(fd: number, bytes: Uint8Array, done: Done): void;
  recvInThread(fd: number, into: Uint8Array, done: Done): void;
  errno(): number;
  address(bytes: Uint8Array): bigint;
}

let loaded: Calls | undefined;

function calls(): Calls {
  return (loaded ??= declareCalls());
}

function declareCalls(): Calls {
  const { koffi, libc } = loadLibc();
  const send = libc.func("intptr_t send(int fd, const void *bytes, size_t length, int flags)");
  const recv = libc.func("intptr_t recv(int fd, void *into, size_t length, int flags)");
  return {
    socket: libc.func("int socket(int family, int type, int protocol)"),
    bind: libc.func("int bind(int fd, const void *address, uint32_t length)"),
    connect: libc.func("int connect(int fd, const void *address, uint32_t length)"),
    getsockname: libc.func("int getsockname(int fd, void *address, _Inout_ uint32_t *length)"),
    setsockopt: libc.func("int setsockopt(int fd, int level, int name, const void *value, uint32_t length)"),
    getsockopt: libc.func("int getsockopt(int fd, int level, int name, void *value, _Inout_ uint32_t *length)"),
    send,
    recv,
    fcntl: libc.func("int fcntl(int fd, int command, long value)"),
    sendInThread: (fd, bytes, done) => void send.async(fd, bytes, bytes.length, 0, done),
    recvInThread: (fd, into, done) => void recv.async(fd, into, into.length, 0, done),
    errno: () => koffi.errno(),
    address: (bytes) => koffi.address(bytes),
  };
}

/** A struct sockaddr_nl: family, padding, port, groups. */
function addressOfPort(port: number): Buffer {
  const address = Buffer.alloc(12);
  address.writeUInt16LE(AF_NETLINK);
  address.writeUInt32LE(port, 4);
  return address;
}

/** A netlink socket, of the network namespace that its thread was in when it was opened. The caller closes it. */
export class NetlinkSocket {
  readonly #calls: Calls;
  readonly #fd: number;

  /** @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`. */
  constructor(protocol: number) {
    if (!isSupportedByteOrder) throw new ProxyError("host_unsupported", "netlink needs a little-endian machine");
    this.#calls = calls();
    this.#fd = this.#calls.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, protocol);
    if (this.#fd < 0) throw kernelError(this.#calls.errno(), "a netlink socket can't be opened");
  }

  /** Send to a port of netlink, and take messages of it alone, whoever knows this socket's port; 0: the kernel. @throws {ProxyError} */
  connect(port = 0): void {
    const address = addressOfPort(port);
    const isConnected = this.#calls.connect(this.#fd, address, address.length) === 0;
    if (!isConnected) throw kernelError(this.#calls.errno(), "a netlink socket can't be opened");
  }

  /** Get a port from the kernel: the socket's address among netlink sockets. @throws {ProxyError} */
  bind(): number {
    // Port 0 asks for one.
    const address = addressOfPort(0);
    const { bind, getsockname } = this.#calls;
    const isBound = bind(this.#fd, address, address.length) === 0 && getsockname(this.#fd, address, Uint32Array.of(address.length)) === 0;
    if (!isBound) throw kernelError(this.#calls.errno(), "a netlink socket can't be opened");
    return address.readUInt32LE(4);
  }

  /** Set an option: a number of 32 bits, or a structure; tells the error's number, 0 for success. */
  setOption(level: number, name: number, value: number | Buffer): number {
    const bytes = typeof value === "number" ? Buffer.from(Int32Array.of(value).buffer) : value;
    return this.#calls.setsockopt(this.#fd, level, name, bytes, bytes.length) < 0 ? this.#calls.errno() : 0;
  }

  /** Send a message; the kernel carries it out meanwhile. @throws {ProxyError} */
  send(bytes: Buffer): void {
    if (this.#calls.send(this.#fd, bytes, bytes.length, 0) < 0) throw kernelError(this.#calls.errno(), "the kernel can't be asked");
  }

  /** Send a message in another thread, which the kernel holds up until it is carried out; resolves to how many bytes were sent, and else why not. */
  sendInThread(bytes: Buffer): Promise<{ readonly length: number; readonly error: number }> {
    return new Promise((resolve, reject) => {
      this.#calls.sendInThread(this.#fd, bytes, (error, length) => {
        if (error === undefined || error === null) resolve({ length, error: this.#calls.errno() });
        else reject(ProxyError.from(error, "tool_failed", "a netlink message can't be sent"));
      });
    });
  }

  /** Receive what is there; undefined: nothing. `length` may be more than there is room for, `error` is its number. */
  receiveNow(into: Buffer, flags = 0): { readonly length: number } | { readonly error: number } | undefined {
    for (;;) {
      const length = this.#calls.recv(this.#fd, into, into.length, MSG_DONTWAIT | flags);
      if (length >= 0) return { length };
      const error = this.#calls.errno();
      if (error === errno("EAGAIN")) return undefined;
      if (error !== errno("EINTR")) return { error };
    }
  }

  /** Receive in another thread, where the kernel makes what is to come; resolves to its length, or to less than 1 and why. Never fails. */
  async receiveInThread(into: Buffer): Promise<{ readonly length: number; readonly error: number }> {
    for (;;) {
      const received = await new Promise<{ readonly length: number; readonly error: number }>((resolve) =>
        this.#calls.recvInThread(this.#fd, into, (error, length) =>
          resolve(error === undefined || error === null ? { length, error: this.#calls.errno() } : { length: -1, error: 0 }),
        ),
      );
      if (received.length >= 0 || received.error !== errno("EINTR")) return received;
    }
  }

  /** Call fcntl. */
  control(command: number, value: number): number {
    return this.#calls.fcntl(this.#fd, command, value);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Where bytes are that C reads later; whoever asks keeps them. */
export function addressOf(bytes: Buffer): bigint {
  return calls().address(bytes);
}

// @source bits/socket.h; SOCK_DGRAM and SOCK_CLOEXEC
const ADDRESS_FAMILY: Readonly<Record<IPFamily, number>> = { IPv4: 2, IPv6: 10 };
const DATAGRAMS = 0x8_0002;
/** @source linux/in.h SOL_IP, SOL_IPV6 */
const LEVEL: Readonly<Record<IPFamily, number>> = { IPv4: 0, IPv6: 41 };

/**
 * Ask the kernel's network code by getsockopt, as old tools do: one call, some microseconds. What is asked for is in `value`, and then the answer.
 *
 * Shape: resolves to the error's number, 0 for success.
 * @throws {ProxyError} `host_unsupported` without glibc, `tool_failed` without a socket.
 */
export function readSocketOption(family: IPFamily, name: number, value: Uint8Array, level: number = LEVEL[family]): number {
  const { socket, getsockopt, errno: lastError } = calls();
  const fd = socket(ADDRESS_FAMILY[family], DATAGRAMS, 0);
  if (fd < 0) throw kernelError(lastError(), "a socket can't be opened");
  try {
    return getsockopt(fd, level, name, value, Uint32Array.of(value.length)) === 0 ? 0 : lastError();
  } finally {
    closeSync(fd);
  }
}
