import { hostPort } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { AF, ipText } from "../host-addresses.ts";
import { attribute, be16, findAttribute, host32, nested } from "../message.ts";
import type { FlowView } from "./flow-matcher.ts";

/** Conntrack message types. @source linux/netfilter/nfnetlink_conntrack.h (subsystem 1) */
export const CT = { dump: 0x101, delete: 0x102 } as const;

/** The protocol number of UDP. */
export const UDP = 17;

/** Attribute numbers. @source linux/netfilter/nfnetlink_conntrack.h */
export const CTA = { tupleOrig: 1, tupleReply: 2, status: 3, protocolInfo: 4, timeout: 7, id: 12, zone: 18, filter: 25 } as const;
const TUPLE = { ip: 1, proto: 2 } as const;
const IP_SOURCE: Readonly<Record<IPFamily, number>> = { IPv4: 1, IPv6: 3 };
const IP_DESTINATION: Readonly<Record<IPFamily, number>> = { IPv4: 2, IPv6: 4 };
const PROTO = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
const FILTER_ORIG_FLAGS = 1;
// Bits of CTA_FILTER_ORIG_FLAGS: which parts of the given tuple must be equal (Linux ≥ 5.8). @source linux include/uapi, CTA_FILTER_F_*
const FILTER_FLAG = { source: 1 << 0, destination: 1 << 1, protocol: 1 << 3, destinationPort: 1 << 5 } as const;

/** nfgenmsg: family, version 0, resource 0. */
export const NFGENMSG_LENGTH = 4;

/** A conntrack entry, as views into a netlink message: copy what must outlive it. */
export interface ConntrackEntry extends FlowView {
  readonly protocol: number;
  /** The body of a request that deletes exactly this entry. A copy. */
  deleteRequest(): Buffer;
}

/** What a kernel-filtered dump asks for: UDP, or another protocol; and where given the original tuple. */
export interface DumpFilter {
  readonly protocol?: number;
  readonly source?: string;
  readonly destination?: string;
  readonly port?: number;
}

/** The body of a dump request. `filter` undefined asks for all entries of the family. */
export function dumpRequest(family: IPFamily, filter: DumpFilter | undefined): Buffer {
  const header = Buffer.of(AF[family], 0, 0, 0);
  if (filter === undefined) return header;
  const { protocol = UDP, source, destination, port } = filter;
  let flags = 0;
  const part = (flag: number, type: number, data: Uint8Array | undefined): readonly Buffer[] => {
    if (data !== undefined) flags |= flag;
    return data === undefined ? [] : [attribute(type, data)];
  };
  const ends = [
    ...part(FILTER_FLAG.source, IP_SOURCE[family], source === undefined ? undefined : ipBytes(source)),
    ...part(FILTER_FLAG.destination, IP_DESTINATION[family], destination === undefined ? undefined : ipBytes(destination)),
  ];
  const proto = [
    ...part(FILTER_FLAG.protocol, PROTO.number, Buffer.of(protocol)),
    ...part(FILTER_FLAG.destinationPort, PROTO.destinationPort, port === undefined ? undefined : be16(port)),
  ];
  const tuple = [...(ends.length === 0 ? [] : [nested(TUPLE.ip, ...ends)]), nested(TUPLE.proto, ...proto)];
  return Buffer.concat([header, nested(CTA.tupleOrig, ...tuple), nested(CTA.filter, attribute(FILTER_ORIG_FLAGS, host32(flags)))]);
}

/** Tell whether an entry is one that `filter` asks for; a kernel before 5.8 ignores the filter. */
export function passesFilter(entry: ConntrackEntry, filter: DumpFilter): boolean {
  if (entry.protocol !== UDP) return false;
  if (filter.port !== undefined && entry.port !== filter.port) return false;
  return filter.destination === undefined || entry.destination() === filter.destination;
}

/** One direction of a connection. Addresses are made text when they are asked for. */
interface Tuple {
  readonly protocol: number;
  source(): string;
  readonly sourcePort: number;
  destination(): string;
  readonly port: number;
}

/** Read one direction out of an entry; undefined: it has no ports. */
export function parseTuple(tuple: Buffer | undefined, family: IPFamily): Tuple | undefined {
  const ip = tuple && findAttribute(tuple, TUPLE.ip);
  const proto = tuple && findAttribute(tuple, TUPLE.proto);
  if (ip === undefined || proto === undefined) return undefined;
  const [source, destination] = [findAttribute(ip, IP_SOURCE[family]), findAttribute(ip, IP_DESTINATION[family])];
  const [protocol, sourcePort, port] = [PROTO.number, PROTO.sourcePort, PROTO.destinationPort].map((type) => findAttribute(proto, type));
  if (source === undefined || destination === undefined || protocol === undefined || sourcePort === undefined || port === undefined)
    return undefined;
  return {
    protocol: protocol.readUInt8(0),
    source: () => ipText(source),
    sourcePort: sourcePort.readUInt16BE(0),
    destination: () => ipText(destination),
    port: port.readUInt16BE(0),
  };
}

/**
 * Read the payload of a conntrack message.
 *
 * Edges: undefined for another family, and for protocols without ports.
 */
export function parseEntry(payload: Buffer, family: IPFamily): ConntrackEntry | undefined {
  if (payload.length < NFGENMSG_LENGTH || payload[0] !== AF[family]) return undefined;
  const reply = findAttribute(payload, CTA.tupleReply, NFGENMSG_LENGTH);
  const asked = parseTuple(findAttribute(payload, CTA.tupleOrig, NFGENMSG_LENGTH), family);
  if (asked === undefined || reply === undefined) return undefined;
  return {
    ...asked,
    replySource() {
      const answered = parseTuple(reply, family);
      return answered === undefined ? "" : hostPort(answered.source(), answered.sourcePort);
    },
    deleteRequest: () => deleteRequest(payload, reply),
  };
}

/**
 * The reply tuple, the zone and the id, as they came.
 *
 * Together they mean this very entry. The id alone is a hash of the original tuple and a memory address that is soon used
 * again, and a request by the original tuple would hit the entry that took this one's place since the dump: the client's
 * next packet, gone to a good endpoint. Its reply tuple names another endpoint, so it is left alone.
 * A request without a tuple would delete every entry of the host, so the tuple is a parameter and not looked up.
 */
function deleteRequest(payload: Buffer, reply: Buffer): Buffer {
  const parts = [payload.subarray(0, NFGENMSG_LENGTH), nested(CTA.tupleReply, reply)];
  for (const type of [CTA.zone, CTA.id]) {
    const data = findAttribute(payload, type, NFGENMSG_LENGTH);
    if (data !== undefined) parts.push(attribute(type, data));
  }
  return Buffer.concat(parts);
}

/** Bytes of a canonical address in network order. */
export function ipBytes(canonical: string): Buffer {
  if (!canonical.includes(":")) return Buffer.from(canonical.split(".").map(Number));
  const [head = "", tail] = canonical.split("::");
  const before = ipv6Groups(head);
  const after = ipv6Groups(tail ?? "");
  const zeros = new Array<string>(8 - before.length - after.length).fill("0");
  return Buffer.concat([...before, ...zeros, ...after].map((group) => be16(Number.parseInt(group, 16))));
}

function ipv6Groups(text: string): readonly string[] {
  return text === "" ? [] : text.split(":");
}
