import { constants } from "node:os";
import type { IPFamily } from "@turnout/core/backend";
import { ProxyError } from "@turnout/core/backend";
import { ADDRESS_BYTES, AF, failure, loadLibc, socketAddress } from "./libc.ts";

/** A packet as it came in, without its IP header. */
export interface RawPacket {
  readonly from: string;
  readonly payload: Buffer;
}

/** A raw IP socket of one protocol. Needs CAP_NET_RAW. Calls never block. */
export interface RawSocket {
  /** Make sends go to `address`, and let ICMP errors come back from {@link RawSocket.receive}. */
  connect(address: string): void;
  bind(address: string): void;
  /** @throws {Error} with an errno `code`; EPERM: the host's own filter stopped it. */
  send(payload: Buffer, to?: string): void;
  /**
   * Take the next packet; undefined when there is none. Payload is valid until the next call.
   * @throws {Error} with an errno `code` when an ICMP error came in (ECONNREFUSED: port unreachable).
   */
  receive(): RawPacket | undefined;
  close(): void;
}

const SOCK_RAW_NONBLOCK_CLOEXEC = 3 | 0o4000 | 0o2000000;

/**
 * Open a raw socket: Node has none, so libc is called directly.
 * @throws {ProxyError} `permission_denied`, `host_unsupported` when koffi has no build for this machine.
 */
export async function openRawSocket(family: IPFamily, protocol: number): Promise<RawSocket> {
  const libc = await loadLibc();
  const fd = libc.socket(AF[family], SOCK_RAW_NONBLOCK_CLOEXEC, protocol);
  if (fd < 0) {
    const cause = failure(libc, "opening a raw socket");
    throw new ProxyError("permission_denied", "opening a raw socket", { hint: "run as root", cause });
  }
  const buffer = Buffer.allocUnsafeSlow(65_536);
  const sender = Buffer.allocUnsafeSlow(ADDRESS_BYTES);
  const senderBytes = Buffer.allocUnsafeSlow(4);
  const check = (result: number, what: string): void => {
    if (result < 0) throw failure(libc, what);
  };
  return {
    connect: (address) => check(libc.connect(fd, socketAddress(address), ADDRESS_BYTES), "connecting a raw socket"),
    bind: (address) => check(libc.bind(fd, socketAddress(address), ADDRESS_BYTES), "binding a raw socket"),
    send: (payload, to) => {
      const sent =
        to === undefined
          ? libc.send(fd, payload, payload.length, 0)
          : libc.sendto(fd, payload, payload.length, 0, socketAddress(to), ADDRESS_BYTES);
      check(Number(sent), "sending on a raw socket");
    },
    receive: () => {
      senderBytes.writeUInt32LE(ADDRESS_BYTES);
      const received = Number(libc.recvfrom(fd, buffer, buffer.length, 0, sender, senderBytes));
      if (received < 0) {
        if (libc.errno() === constants.errno.EAGAIN) return undefined;
        throw failure(libc, "receiving on a raw socket");
      }
      const packet = buffer.subarray(0, received);
      // A v4 raw socket gives the IP header too, a v6 one does not.
      const payload = family === "IPv4" ? packet.subarray(((packet[0] ?? 0) & 15) * 4) : packet;
      return { from: addressIn(sender), payload };
    },
    close: () => {
      libc.close(fd);
    },
  };
}

function addressIn(bytes: Buffer): string {
  if (bytes.readUInt16LE(0) === AF.IPv4) return bytes.subarray(4, 8).join(".");
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(8 + 2 * index).toString(16));
  // The URL parser writes IPv6 addresses in their canonical form.
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
