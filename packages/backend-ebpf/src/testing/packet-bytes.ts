import type { IPFamily, Protocol } from "@turnout/core/backend";
import { decodeAddress, encodeAddress } from "../layout.ts";

/** The ends of a packet that begins a flow. Addresses are 16 bytes, IPv4 as ::ffff:a.b.c.d. */
export interface PacketEnds {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  readonly source: Buffer;
  readonly sourcePort: number;
  readonly destination: Buffer;
  readonly port: number;
}

/** Numbers of protocols. @source linux/in.h */
export const PROTOCOL_NUMBERS: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };

const HEADER = { IPv4: 20, IPv6: 40 } as const;
const TRANSPORT: Readonly<Record<Protocol, number>> = { TCP: 20, UDP: 8, SCTP: 32 };
const TCP = { lengthAt: 12, flagsAt: 13, syn: 0x02 } as const;
const SCTP = { chunkAt: 12, init: 1 } as const;

/** Make the first packet of a flow, from its IP header on, as far as programs read it. */
export function packetBytes({ family, protocol, source, sourcePort, destination, port }: PacketEnds): Buffer {
  const transport = HEADER[family];
  const bytes = Buffer.allocUnsafe(transport + TRANSPORT[protocol]).fill(0);
  if (family === "IPv4") {
    bytes[0] = 0x45;
    bytes.writeUInt16BE(bytes.length, 2);
    bytes[8] = 64;
    bytes[9] = PROTOCOL_NUMBERS[protocol];
    source.copy(bytes, 12, 12, 16);
    destination.copy(bytes, 16, 12, 16);
  } else {
    bytes[0] = 0x60;
    bytes.writeUInt16BE(TRANSPORT[protocol], 4);
    bytes[6] = PROTOCOL_NUMBERS[protocol];
    bytes[7] = 64;
    source.copy(bytes, 8);
    destination.copy(bytes, 24);
  }
  bytes.writeUInt16BE(sourcePort, transport);
  bytes.writeUInt16BE(port, transport + 2);
  if (protocol === "TCP") {
    bytes[transport + TCP.lengthAt] = 0x50;
    bytes[transport + TCP.flagsAt] = TCP.syn;
  } else if (protocol === "UDP") bytes.writeUInt16BE(TRANSPORT.UDP, transport + 4);
  else bytes[transport + SCTP.chunkAt] = SCTP.init;
  return bytes;
}

const known = new Map<string, Buffer>();
const texts = new Map<string, string>();

/** An address of 16 bytes as text, canonical. */
export function addressText(bytes: Buffer): string {
  const key = bytes.toString("latin1");
  let text = texts.get(key);
  if (text === undefined) texts.set(key, (text = decodeAddress(bytes)));
  return text;
}

/** An address as 16 bytes, which nobody may change: few addresses are in very many packets. */
export function addressBytes(text: string): Buffer {
  let bytes = known.get(text);
  if (bytes === undefined) known.set(text, (bytes = encodeAddress(text)));
  return bytes;
}
