import type { IPFamily } from "@turnout/core/backend";
import { constants } from "node:os";
import { ADDRESS_BYTES, AF, failure, loadLibc, socketAddress } from "../raw/libc.ts";

/** A UDP socket that only sends, as fast as it is told to: Node's reads whatever comes, and sends one datagram at a time from its event loop. */
export interface UdpSocket {
  /** Send a datagram of a byte; false when the network would not take it now. @throws {Error} with the errno of another failure. */
  send(to: Buffer): boolean;
  close(): void;
}

const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_DONTWAIT = 0x40;
/** The device's queue or the socket's buffer is full. */
const FULL: readonly number[] = [constants.errno.EAGAIN, constants.errno.ENOBUFS];
const PAYLOAD = Buffer.from("p");

/** Opens {@link UdpSocket}s. */
export interface UdpSockets {
  /** An address and a port as the kernel reads them. */
  addressOf(address: string, port: number): Buffer;
  /** @throws {Error} with an errno when there is none to have, or `bound` is taken. */
  open(family: IPFamily, bound?: Buffer): UdpSocket;
}

/** Load what opens them: on first use, so that it is in no process that is measured without. */
export async function loadUdpSockets(): Promise<UdpSockets> {
  const libc = await loadLibc();
  const checked = (result: number, what: string): number => {
    if (result < 0) throw failure(libc, what);
    return result;
  };
  return {
    addressOf: socketAddress,
    open(family, bound) {
      const fd = checked(libc.socket(AF[family], SOCK_DGRAM_CLOEXEC, 0), "opening a UDP socket");
      if (bound !== undefined) checked(libc.bind(fd, bound, ADDRESS_BYTES), "binding a UDP socket");
      return {
        send(to) {
          if (Number(libc.sendto(fd, PAYLOAD, PAYLOAD.length, MSG_DONTWAIT, to, ADDRESS_BYTES)) >= 0) return true;
          if (FULL.includes(libc.errno())) return false;
          throw failure(libc, "sending a datagram");
        },
        close: () => void libc.close(fd),
      };
    },
  };
}
