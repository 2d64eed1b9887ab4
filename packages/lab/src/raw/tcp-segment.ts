import { ProxyError } from "@turnout/core/backend";
import { addressBytes } from "./libc.ts";

/** What of a TCP segment tells whose it is and where it belongs. Numbers of 32 bits wrap around. */
export interface TcpSegment {
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly sequence: number;
  readonly acknowledged: number;
  /** As they are on the wire, see {@link TCP_FLAGS}. */
  readonly flags: number;
  readonly data: Uint8Array;
}

/** Bits of {@link TcpSegment.flags}. */
export const TCP_FLAGS = { RST: 0x04, PSH: 0x08, ACK: 0x10 } as const;

const TCP_PROTOCOL = 6;
const HEADER_BYTES = 20;
/** Anything: these segments are no part of a conversation that goes on. */
const WINDOW = 65_535;

/** Write a segment out, with its checksum for these two addresses of one family. Pure. @source RFC 9293 section 3.1; RFC 8200 section 8.1 */
export function encodeTcp(segment: TcpSegment, from: string, to: string): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES + segment.data.length);
  bytes.writeUInt16BE(segment.sourcePort, 0);
  bytes.writeUInt16BE(segment.destinationPort, 2);
  bytes.writeUInt32BE(segment.sequence >>> 0, 4);
  bytes.writeUInt32BE(segment.acknowledged >>> 0, 8);
  bytes.writeUInt8((HEADER_BYTES / 4) << 4, 12);
  bytes.writeUInt8(segment.flags, 13);
  bytes.writeUInt16BE(WINDOW, 14);
  bytes.set(segment.data, HEADER_BYTES);
  // The families' pseudo headers have the same words in another order, which makes no difference to their sum.
  const pseudo = Buffer.concat([addressBytes(from), addressBytes(to), Buffer.from([0, TCP_PROTOCOL, 0, 0])]);
  pseudo.writeUInt16BE(bytes.length, pseudo.length - 2);
  bytes.writeUInt16BE(internetChecksum(Buffer.concat([pseudo, bytes])), 16);
  return bytes;
}

/** Read a segment; its checksum is not looked at, as network cards may leave that to be filled in. Pure. @throws {ProxyError} `invalid_object` when it is cut short. */
export function decodeTcp(bytes: Buffer): TcpSegment {
  const dataAt = bytes.length < HEADER_BYTES ? HEADER_BYTES : (bytes.readUInt8(12) >> 4) * 4;
  if (bytes.length < dataAt) throw new ProxyError("invalid_object", "TCP segment is cut short", { object: `${bytes.length} bytes` });
  return {
    sourcePort: bytes.readUInt16BE(0),
    destinationPort: bytes.readUInt16BE(2),
    sequence: bytes.readUInt32BE(4),
    acknowledged: bytes.readUInt32BE(8),
    flags: bytes.readUInt8(13),
    data: Buffer.from(bytes.subarray(dataAt)),
  };
}

/** @source RFC 1071 */
function internetChecksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += at + 1 < bytes.length ? bytes.readUInt16BE(at) : bytes.readUInt8(at) << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
