import { endianness } from "node:os";

/** Flags of a netlink message header. @source linux/netlink.h */
export const NLM_F = { request: 0x1, ack: 0x4, dumpInterrupted: 0x10, dump: 0x300 } as const;

/** Message types every netlink protocol shares. @source linux/netlink.h */
export const NLMSG = { error: 2, done: 3 } as const;

const HEADER_LENGTH = 16;
const ATTRIBUTE_HEADER_LENGTH = 4;
const NESTED = 0x8000;
/** Masks NLA_F_NESTED and NLA_F_NET_BYTEORDER off an attribute's type. */
const TYPE_MASK = 0x3fff;

// Headers are in host order, and every machine Turnout supports (x64, arm64) is little-endian.
/** Whether this machine's byte order is the one this code writes. */
export const isSupportedByteOrder: boolean = endianness() === "LE";

/** One message of a datagram; `payload` points into the datagram. */
export interface NetlinkMessage {
  readonly type: number;
  readonly flags: number;
  readonly seq: number;
  readonly payload: Buffer;
}

/** Walk the messages of a datagram. Edges: a truncated rest ends the walk. */
export function* messagesOf(datagram: Buffer): Generator<NetlinkMessage> {
  for (let at = 0; at + HEADER_LENGTH <= datagram.length;) {
    const length = datagram.readUInt32LE(at);
    if (length < HEADER_LENGTH || at + length > datagram.length) return;
    yield {
      type: datagram.readUInt16LE(at + 4),
      flags: datagram.readUInt16LE(at + 6),
      seq: datagram.readUInt32LE(at + 8),
      payload: datagram.subarray(at + HEADER_LENGTH, at + length),
    };
    at += align(length);
  }
}

/** Write a message, padded to four bytes so that several can follow one another. */
export function encodeMessage(type: number, flags: number, seq: number, payload: Uint8Array): Buffer {
  const length = HEADER_LENGTH + payload.length;
  const message = Buffer.alloc(align(length));
  message.writeUInt32LE(length, 0);
  message.writeUInt16LE(type, 4);
  message.writeUInt16LE(flags, 6);
  message.writeUInt32LE(seq, 8);
  message.set(payload, HEADER_LENGTH);
  return message;
}

/** Find one attribute among those from `offset` on; its data points into `bytes`. */
export function findAttribute(bytes: Buffer, wanted: number, offset = 0): Buffer | undefined {
  for (let at = offset; at + ATTRIBUTE_HEADER_LENGTH <= bytes.length;) {
    const length = bytes.readUInt16LE(at);
    if (length < ATTRIBUTE_HEADER_LENGTH || at + length > bytes.length) return undefined;
    if ((bytes.readUInt16LE(at + 2) & TYPE_MASK) === wanted) return bytes.subarray(at + ATTRIBUTE_HEADER_LENGTH, at + length);
    at += align(length);
  }
  return undefined;
}

/** The part of `bytes` that ends with one attribute among those from `offset` on; all of them when it isn't there. */
export function throughAttribute(bytes: Buffer, wanted: number, offset = 0): Buffer {
  const data = findAttribute(bytes, wanted, offset);
  return data === undefined ? bytes : bytes.subarray(0, data.byteOffset - bytes.byteOffset + data.length);
}

/** The data of all attributes, in order; it points into `bytes`. */
export function attributesOf(bytes: Buffer): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at + ATTRIBUTE_HEADER_LENGTH <= bytes.length;) {
    const length = bytes.readUInt16LE(at);
    if (length < ATTRIBUTE_HEADER_LENGTH || at + length > bytes.length) break;
    found.push(bytes.subarray(at + ATTRIBUTE_HEADER_LENGTH, at + length));
    at += align(length);
  }
  return found;
}

/** Write an attribute. */
export function attribute(type: number, data: Uint8Array): Buffer {
  const length = ATTRIBUTE_HEADER_LENGTH + data.length;
  const bytes = Buffer.alloc(align(length));
  bytes.writeUInt16LE(length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(data, ATTRIBUTE_HEADER_LENGTH);
  return bytes;
}

/** Write an attribute made of attributes. */
export function nested(type: number, ...attributes: readonly Uint8Array[]): Buffer {
  return attribute(type | NESTED, Buffer.concat(attributes));
}

/** Two bytes in network order. */
export function be16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

/** Two bytes in host order. */
export function host16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

/** Four bytes in host order. */
export function host32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Text that ends in a zero byte. */
export function zeroEnded(text: string): Buffer {
  return Buffer.from(`${text}\0`, "latin1");
}

/** Text of an attribute that ends in a zero byte. */
export function zeroTerminated(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString("latin1", 0, end < 0 ? bytes.length : end);
}

function align(length: number): number {
  return (length + 3) & ~3;
}
