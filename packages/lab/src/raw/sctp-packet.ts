import { ProxyError } from "@turnout/core/backend";

/** The first packet of an SCTP association, or its answer. Tags are 32-bit and not 0. */
export interface SctpPacket {
  readonly kind: "INIT" | "INIT-ACK";
  readonly sourcePort: number;
  readonly destinationPort: number;
  /** 0 in an INIT; in an INIT-ACK the tag the INIT asked for. */
  readonly verificationTag: number;
  readonly initiateTag: number;
  /** State cookie; only in an INIT-ACK. Opaque to everybody but the server. */
  readonly cookie: Uint8Array;
}

const CHUNK: Readonly<Record<SctpPacket["kind"], number>> = { INIT: 1, "INIT-ACK": 2 };
const STATE_COOKIE = 7;
const COMMON_HEADER_BYTES = 12;
const INIT_CHUNK_BYTES = 20;

/** Write a packet out, with its checksum. Pure. @source RFC 9260 sections 3.1, 3.3.2, 3.3.3. */
export function encodeSctp(packet: SctpPacket): Buffer {
  const hasCookie = packet.kind === "INIT-ACK";
  const parameterBytes = hasCookie ? 4 + packet.cookie.length : 0;
  const chunkBytes = INIT_CHUNK_BYTES + parameterBytes;
  const bytes = Buffer.alloc(COMMON_HEADER_BYTES + chunkBytes + (-chunkBytes & 3));
  bytes.writeUInt16BE(packet.sourcePort, 0);
  bytes.writeUInt16BE(packet.destinationPort, 2);
  bytes.writeUInt32BE(packet.verificationTag, 4);
  bytes.writeUInt8(CHUNK[packet.kind], 12);
  bytes.writeUInt16BE(chunkBytes, 14);
  bytes.writeUInt32BE(packet.initiateTag, 16);
  bytes.writeUInt32BE(65_536, 20); // advertised receive window
  bytes.writeUInt16BE(1, 24); // outbound streams
  bytes.writeUInt16BE(1, 26); // inbound streams
  bytes.writeUInt32BE(packet.initiateTag, 28); // first TSN: any value
  if (hasCookie) {
    bytes.writeUInt16BE(STATE_COOKIE, 32);
    bytes.writeUInt16BE(parameterBytes, 34);
    bytes.set(packet.cookie, 36);
  }
  bytes.writeUInt32LE(crc32c(bytes), 8);
  return bytes;
}

/**
 * Read a packet. Pure.
 *
 * Edges: undefined for packets that start with another chunk (ABORT and the like).
 * @throws {ProxyError} `invalid_object` when it is cut short or its checksum is wrong: whoever rewrote it on the way did it badly.
 */
export function decodeSctp(bytes: Buffer): SctpPacket | undefined {
  if (bytes.length < COMMON_HEADER_BYTES + 4)
    throw new ProxyError("invalid_object", "SCTP packet is cut short", { object: `${bytes.length} bytes` });
  const zeroed = Buffer.from(bytes);
  zeroed.writeUInt32LE(0, 8);
  if (crc32c(zeroed) !== bytes.readUInt32LE(8)) throw new ProxyError("invalid_object", "SCTP packet has a wrong checksum");
  const type = bytes.readUInt8(12);
  const kind = type === CHUNK.INIT ? "INIT" : type === CHUNK["INIT-ACK"] ? "INIT-ACK" : undefined;
  if (kind === undefined) return undefined;
  const end = COMMON_HEADER_BYTES + bytes.readUInt16BE(14);
  if (end > bytes.length || end < COMMON_HEADER_BYTES + INIT_CHUNK_BYTES)
    throw new ProxyError("invalid_object", "SCTP chunk has a wrong length", { object: kind });
  return {
    kind,
    sourcePort: bytes.readUInt16BE(0),
    destinationPort: bytes.readUInt16BE(2),
    verificationTag: bytes.readUInt32BE(4),
    initiateTag: bytes.readUInt32BE(16),
    cookie: kind === "INIT" ? Buffer.alloc(0) : cookieOf(bytes.subarray(COMMON_HEADER_BYTES + INIT_CHUNK_BYTES, end)),
  };
}

function cookieOf(parameters: Buffer): Uint8Array {
  for (let at = 0; at + 4 <= parameters.length;) {
    const bytes = Math.max(4, parameters.readUInt16BE(at + 2));
    if (parameters.readUInt16BE(at) === STATE_COOKIE) return parameters.subarray(at + 4, at + bytes);
    at += bytes + (-bytes & 3);
  }
  return Buffer.alloc(0);
}

// Castagnoli polynomial, reflected; the table of RFC 9260 appendix A.
const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value >>> 0;
});

/** Compute the CRC32c of some bytes, as SCTP uses it. Pure; gives an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}
