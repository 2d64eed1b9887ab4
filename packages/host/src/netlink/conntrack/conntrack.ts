import { hostPort } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { AF, ipText } from "../host-addresses.ts";
import { attribute, be16, findAttribute, host32, nested } from "../message.ts";
import type { FlowView } from "./flow-matcher.ts";

/** Conntrack message types. @source linux/netfilter/nfnetlink_conntrack.h (subsystem 1) */
export const CT = { dump: 0x101, delete: 0x102 } as const;

/** The protocol number of UDP. */
export const UDP = 17;

// Attribute numbers. @source linux/netfilter/nfnetlink_conntrack.h
const CTA = { tupleOrig: 1, tupleReply: 2, id: 12, zone: 18, filter: 25 } as const;
const TUPLE = { ip: 1, proto: 2 } as const;
const IP_SOURCE: Readonly<Record<IPFamily, number>> = { IPv4: 1, IPv6: 3 };
const IP_DESTINATION: Readonly<Record<IPFamily, number>> = { IPv4: 2, IPv6: 4 };
const PROTO = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
const FILTER_ORIG_FLAGS = 1;
// Bits of CTA_FILTER_ORIG_FLAGS: which parts of the given tuple must be equal (Linux ≥ 5.8). @source linux include/uapi, CTA_FILTER_F_*
const FILTER_FLAG = { destination: 1 << 1, protocol: 1 << 3, destinationPort: 1 << 5 } as const;

/** nfgenmsg: family, version 0, resource 0. */
const NFGENMSG_LENGTH = 4;

/** A conntrack entry, as views into a netlink message: copy what must outlive it. */
export interface ConntrackEntry extends FlowView {
  readonly protocol: number;
  /** The body of a request that deletes exactly this entry. A copy. */
  deleteRequest(): Buffer;
}

/** What a kernel-filtered dump asks for: UDP, and where given the original destination. */
export interface DumpFilter {
  readonly address?: string;
  readonly port?: number;
}

/** The body of a dump request. `filter` undefined asks for all entries of the family. */
export function dumpRequest(family: IPFamily, filter: DumpFilter | undefined): Buffer {
  const header = netfilterHeader(family);
  if (filter === undefined) return header;
  let flags: number = FILTER_FLAG.protocol;
  const proto = [attribute(PROTO.number, Buffer.of(UDP))];
  if (filter.port !== undefined) {
    flags |= FILTER_FLAG.destinationPort;
    proto.push(attribute(PROTO.destinationPort, be16(filter.port)));
  }
  const tuple = [nested(TUPLE.proto, ...proto)];
  if (filter.address !== undefined) {
    flags |= FILTER_FLAG.destination;
    tuple.unshift(nested(TUPLE.ip, attribute(IP_DESTINATION[family], ipBytes(filter.address))));
  }
  return Buffer.concat([header, nested(CTA.tupleOrig, ...tuple), nested(CTA.filter, attribute(FILTER_ORIG_FLAGS, host32(flags)))]);
}

/** Tell whether an entry is one that `filter` asks for; a kernel before 5.8 ignores the filter. */
export function passesFilter(entry: ConntrackEntry, filter: DumpFilter): boolean {
  if (entry.protocol !== UDP) return false;
  if (filter.port !== undefined && entry.port !== filter.port) return false;
  return filter.address === undefined || entry.destination() === filter.address;
}

/**
 * Read the payload of a conntrack message.
 *
 * Edges: undefined for another family, and for protocols without ports.
 */
export function parseEntry(payload: Buffer, family: IPFamily): ConntrackEntry | undefined {
  if (payload.length < NFGENMSG_LENGTH || payload[0] !== AF[family]) return undefined;
  const orig = findAttribute(payload, CTA.tupleOrig, NFGENMSG_LENGTH);
  const proto = orig && findAttribute(orig, TUPLE.proto);
  const protocol = proto && findAttribute(proto, PROTO.number);
  const port = proto && findAttribute(proto, PROTO.destinationPort);
  const ip = orig && findAttribute(orig, TUPLE.ip);
  const destination = ip && findAttribute(ip, IP_DESTINATION[family]);
  const reply = findAttribute(payload, CTA.tupleReply, NFGENMSG_LENGTH);
  if (protocol === undefined || port === undefined || destination === undefined || reply === undefined) return undefined;
  return {
    protocol: protocol.readUInt8(0),
    port: port.readUInt16BE(0),
    destination: () => ipText(destination),
    replySource: () => replySource(reply, family),
    deleteRequest: () => deleteRequest(payload, reply),
  };
}

function replySource(reply: Buffer, family: IPFamily): string {
  const ip = findAttribute(reply, TUPLE.ip);
  const source = ip && findAttribute(ip, IP_SOURCE[family]);
  const proto = findAttribute(reply, TUPLE.proto);
  const port = proto && findAttribute(proto, PROTO.sourcePort);
  return source === undefined || port === undefined ? "" : hostPort(ipText(source), port.readUInt16BE(0));
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

function netfilterHeader(family: IPFamily): Buffer {
  return Buffer.of(AF[family], 0, 0, 0);
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
