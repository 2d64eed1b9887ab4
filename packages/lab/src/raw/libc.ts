import { constants } from "node:os";
import { isIP, isIPv6 } from "node:net";
import type { IPFamily } from "@turnout/core/backend";
import { ProxyError } from "@turnout/core/backend";

/** Address families, as the kernel numbers them. */
export const AF: Readonly<Record<IPFamily, number>> = { IPv4: 2, IPv6: 10 };
/** Room for an address of either family. */
export const ADDRESS_BYTES = 28;

/** What of libc is called: Node has no raw sockets, and its UDP sockets read whatever comes. */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Buffer, bytes: number): number;
  connect(fd: number, address: Buffer, bytes: number): number;
  send(fd: number, data: Buffer, bytes: number, flags: number): number;
  sendto(fd: number, data: Buffer, bytes: number, flags: number, address: Buffer, addressBytes: number): number;
  recvfrom(fd: number, data: Buffer, bytes: number, flags: number, address: Buffer, addressBytes: Buffer): number;
  close(fd: number): number;
  errno(): number;
}

let loaded: Libc | undefined;

/** Load libc with the package that calls it. @throws {ProxyError} `host_unsupported` when koffi has no build for this machine. */
export async function loadLibc(): Promise<Libc> {
  if (loaded !== undefined) return loaded;
  // Loaded on first use: most agents never speak SCTP, and koffi costs 30 ms.
  const { default: koffi } = await import("koffi").catch((cause: unknown) => {
    throw new ProxyError("host_unsupported", "raw and UDP sockets need the package koffi", { hint: "npm install koffi", cause });
  });
  const libc = koffi.load("libc.so.6");
  loaded = {
    socket: libc.func("int socket(int domain, int type, int protocol)"),
    bind: libc.func("int bind(int fd, const void *address, uint32_t bytes)"),
    connect: libc.func("int connect(int fd, const void *address, uint32_t bytes)"),
    send: libc.func("intptr_t send(int fd, const void *data, size_t bytes, int flags)"),
    sendto: libc.func("intptr_t sendto(int fd, const void *data, size_t bytes, int flags, const void *address, uint32_t addressBytes)"),
    recvfrom: libc.func("intptr_t recvfrom(int fd, void *data, size_t bytes, int flags, void *address, void *addressBytes)"),
    close: libc.func("int close(int fd)"),
    errno: () => koffi.errno(),
  };
  return loaded;
}

/** An error with the errno that the last call has left, as `code`. */
export function failure(libc: Libc, what: string): Error {
  const errno = libc.errno();
  const code = Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;
  return Object.assign(new Error(`${what}: ${code}`), { code, errno });
}

/** Write a struct sockaddr_in or sockaddr_in6; raw sockets have no port. */
export function socketAddress(address: string, port: number = 0): Buffer {
  if (isIP(address) === 0) throw new Error(`"${address}" is no address`);
  const bytes = Buffer.allocUnsafeSlow(ADDRESS_BYTES).fill(0);
  bytes.writeUInt16BE(port, 2);
  if (isIPv6(address)) {
    bytes.writeUInt16LE(AF.IPv6, 0);
    addressBytes(address).copy(bytes, 8);
  } else {
    bytes.writeUInt16LE(AF.IPv4, 0);
    addressBytes(address).copy(bytes, 4);
  }
  return bytes;
}

/** Write an IP address as packets have it: four bytes, or sixteen. Pure. */
export function addressBytes(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const groups = [...front, ...Array.from({ length: 8 - front.length - back.length }, () => "0"), ...back];
  const bytes = Buffer.alloc(16);
  groups.forEach((group, index) => bytes.writeUInt16BE(Number.parseInt(group, 16), 2 * index));
  return bytes;
}
