// Packets as bytes, for programs that are tried on one. Checksums are left out: no program of ours looks at them.
import { encodeAddress } from "../bytes/layout.ts";

/** What a packet is like; the rest is usual. */
export interface RawPacket {
  readonly from: string;
  readonly fromPort: number;
  readonly to: string;
  readonly toPort: number;
  readonly protocol: number;
  /** IPv4: bytes of options, a multiple of 4. IPv6: extension headers, by their numbers. */
  readonly options?: number;
  readonly extensions?: readonly number[];
  /** Of a fragment, in units of 8 bytes; undefined: the packet isn't one. */
  readonly fragment?: number;
  /** The number of the protocol in the Ethernet header. */
  readonly type?: number;
  /** The address of another's device. */
  readonly isAnothers?: boolean;
  /** Bytes after the last IP header; 20 unless said. */
  readonly length?: number;
  /** Flags of TCP. */
  readonly flags?: number;
}

/** @source linux/in.h */
export const PROTOCOL = { icmp: 1, tcp: 6, udp: 17, sctp: 132, hopByHop: 0, routing: 43, fragment: 44, destination: 60 } as const;

const MORE_FRAGMENTS = 0x2000;

/** Write it, from the Ethernet header on. */
export function rawPacket(packet: RawPacket): Buffer {
  const isIPv6 = packet.to.includes(":");
  const ethernet = Buffer.alloc(14);
  if (packet.isAnothers === true) ethernet[5] = 1;
  ethernet.writeUInt16BE(packet.type ?? (isIPv6 ? 0x86dd : 0x0800), 12);
  const body = Buffer.alloc(20);
  body.writeUInt16BE(packet.fromPort, 0);
  body.writeUInt16BE(packet.toPort, 2);
  body[13] = packet.flags ?? 0;
  const cut = body.subarray(0, packet.length ?? body.length);
  return Buffer.concat([ethernet, ...(isIPv6 ? ipv6(packet, cut) : ipv4(packet, cut))]);
}

function ipv4({ from, to, protocol, options = 0, fragment }: RawPacket, body: Buffer): readonly Buffer[] {
  const header = Buffer.alloc(20 + options);
  header[0] = 0x40 | (header.length / 4);
  header.writeUInt16BE(header.length + body.length, 2);
  if (fragment !== undefined) header.writeUInt16BE(MORE_FRAGMENTS | fragment, 6);
  header[8] = 64;
  header[9] = protocol;
  encodeAddress(from).copy(header, 12, 12);
  encodeAddress(to).copy(header, 16, 12);
  return [header, body];
}

function ipv6({ from, to, protocol, extensions = [], fragment }: RawPacket, body: Buffer): readonly Buffer[] {
  const order = [...extensions, protocol];
  const headers = extensions.map((number, index) => {
    const header = Buffer.alloc(number === PROTOCOL.destination ? 16 : 8);
    header[0] = order[index + 1] ?? 0;
    if (number === PROTOCOL.fragment) header.writeUInt16BE(((fragment ?? 0) << 3) | 1, 2);
    else header[1] = header.length / 8 - 1;
    return header;
  });
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(
    headers.reduce((sum, { length }) => sum + length, body.length),
    4,
  );
  header[6] = order[0] ?? 0;
  header[7] = 64;
  encodeAddress(from).copy(header, 8);
  encodeAddress(to).copy(header, 24);
  return [header, ...headers, body];
}
