import { isIPv6 } from "node:net";

/** A UDP socket that does only what it is told: Node's reads whatever comes, and sends one datagram at a time from its event loop. */
export interface UdpSocket {
  /** Send a datagram of a byte; false when the network would not take it now. @throws {Error} with the errno of another failure. */
  send(to: SocketAddress): boolean;
  close(): void;
}

/** An address and a port as the kernel reads them. */
export type SocketAddress = Buffer;

const AF = { IPv4: 2, IPv6: 10 } as const;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_DONTWAIT = 0x40;
const ADDRESS_BYTES = 28;
/** EAGAIN and ENOBUFS: the device's queue or the socket's buffer is full. */
const FULL: readonly number[] = [11, 105];
const PAYLOAD = Buffer.from("p");

/** Opens {@link UdpSocket}s: libc's calls, as Node has none of them. */
export interface UdpSockets {
  addressOf(address: string, port: number): SocketAddress;
  /** @throws {Error} with an errno when there is none to have, or `bound` is taken. */
  open(family: keyof typeof AF, bound?: SocketAddress): UdpSocket;
}

/** Load libc with the package that calls it: on first use, so that it is in no process that is measured without. */
export async function loadUdpSockets(): Promise<UdpSockets> {
  const { default: koffi } = await import("koffi");
  const libc = koffi.load("libc.so.6");
  const inetPton = libc.func("int inet_pton(int family, const char *text, void *bytes)") as (...args: unknown[]) => number;
  const socket = libc.func("int socket(int domain, int type, int protocol)") as (...args: number[]) => number;
  const bind = libc.func("int bind(int fd, const void *address, uint32_t bytes)") as (...args: unknown[]) => number;
  const close = libc.func("int close(int fd)") as (fd: number) => number;
  const sendto = libc.func(
    "intptr_t sendto(int fd, const void *data, size_t bytes, int flags, const void *address, uint32_t addressBytes)",
  ) as (...args: unknown[]) => number;
  const checked = (result: number, what: string): number => {
    if (result < 0) throw new Error(`${what}: errno ${koffi.errno()}`);
    return result;
  };
  return {
    addressOf(address, port) {
      const family = isIPv6(address) ? AF.IPv6 : AF.IPv4;
      // struct sockaddr_in or sockaddr_in6: family, port, then four bytes, or a flow label and sixteen.
      const bytes = Buffer.alloc(ADDRESS_BYTES);
      bytes.writeUInt16LE(family, 0);
      bytes.writeUInt16BE(port, 2);
      const at = family === AF.IPv6 ? 8 : 4;
      if (inetPton(family, address, bytes.subarray(at)) !== 1) throw new Error(`"${address}" is no address`);
      return bytes;
    },
    open(family, bound) {
      const fd = checked(socket(AF[family], SOCK_DGRAM_CLOEXEC, 0), "opening a UDP socket");
      if (bound !== undefined) checked(bind(fd, bound, ADDRESS_BYTES), "binding a UDP socket");
      return {
        send(to) {
          if (Number(sendto(fd, PAYLOAD, PAYLOAD.length, MSG_DONTWAIT, to, ADDRESS_BYTES)) >= 0) return true;
          if (FULL.includes(koffi.errno())) return false;
          throw new Error(`sending a datagram: errno ${koffi.errno()}`);
        },
        close: () => void close(fd),
      };
    },
  };
}
