import type { IPFamily, Protocol } from "@turnout/core";
import type { NetlinkChannel } from "../channel.ts";
import { CT, ipBytes } from "./conntrack.ts";
import { kernelError } from "../errno.ts";
import { AF, ipText } from "../host-addresses.ts";
import { attribute, be16, findAttribute, host32, nested } from "../message.ts";

/** Which conntrack entries are wanted: those of a client to one address and port. */
export interface FlowQuestion {
  readonly protocol: Protocol;
  /** Canonical; whoever sends. */
  readonly source: string;
  /** Canonical; where it was sent to, before any translation. */
  readonly destination: string;
  readonly port: number;
}

/** A conntrack entry, as far as it says where packets go. Addresses are canonical. */
export interface Flow {
  readonly source: string;
  readonly sourcePort: number;
  /** Who answers: the endpoint, or the destination itself where nothing is translated. */
  readonly answerer: string;
  readonly answererPort: number;
  /** An answer was seen. */
  readonly isAnswered: boolean;
  /** Of TCP, as the kernel numbers it; undefined: another protocol's, or not told. */
  readonly tcpState?: number;
  /** For how long the kernel keeps it, in seconds, unless another packet comes. */
  readonly secondsLeft?: number;
}

// Attribute numbers. @source linux/netfilter/nfnetlink_conntrack.h
const CTA = { tupleOrig: 1, tupleReply: 2, status: 3, protocolInfo: 4, timeout: 7, filter: 25 } as const;
const TUPLE = { ip: 1, proto: 2 } as const;
const IP_SOURCE: Readonly<Record<IPFamily, number>> = { IPv4: 1, IPv6: 3 };
const IP_DESTINATION: Readonly<Record<IPFamily, number>> = { IPv4: 2, IPv6: 4 };
const INFO = { tcp: 1, tcpState: 1 } as const;
const PROTO = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
const FILTER_ORIG_FLAGS = 1;
const FILTER_FLAG = { source: 1 << 0, destination: 1 << 1, protocol: 1 << 3, destinationPort: 1 << 5 } as const;
const PROTOCOLS: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };
/** IPS_SEEN_REPLY. */
const SEEN_REPLY = 1 << 1;
const NFGENMSG_LENGTH = 4;
const FLOWS_MAX = 1_000;

/** The body of the dump request; a kernel before 5.8 ignores what it filters by. */
function requestFor(family: IPFamily, { protocol, source, destination, port }: FlowQuestion): Buffer {
  const proto = nested(TUPLE.proto, attribute(PROTO.number, Buffer.of(PROTOCOLS[protocol])), attribute(PROTO.destinationPort, be16(port)));
  // Linux compares IPv6 addresses the wrong way round (ctnetlink_filter_match_tuple, seen on 6.18).
  const isByAddress = family === "IPv4";
  const ends = [attribute(IP_SOURCE[family], ipBytes(source)), attribute(IP_DESTINATION[family], ipBytes(destination))];
  const tuple = [...(isByAddress ? [nested(TUPLE.ip, ...ends)] : []), proto];
  const flags = FILTER_FLAG.protocol | FILTER_FLAG.destinationPort | (isByAddress ? FILTER_FLAG.source | FILTER_FLAG.destination : 0);
  return Buffer.concat([
    Buffer.of(AF[family], 0, 0, 0),
    nested(CTA.tupleOrig, ...tuple),
    nested(CTA.filter, attribute(FILTER_ORIG_FLAGS, host32(flags))),
  ]);
}

/**
 * List a client's conntrack entries to one address and port; at most a thousand.
 * @throws {ProxyError} `permission_denied`, `host_unsupported`, `tool_failed`.
 */
export async function listFlows(channel: Pick<NetlinkChannel, "dump">, family: IPFamily, question: FlowQuestion): Promise<readonly Flow[]> {
  const flows: Flow[] = [];
  const end = await channel.dump(CT.dump, requestFor(family, question), (_, payload) => {
    const flow = flows.length < FLOWS_MAX ? parseFlow(payload, family, question) : undefined;
    if (flow !== undefined) flows.push(flow);
  });
  if (end.errno !== 0) throw kernelError(end.errno, "connections can't be listed");
  return flows;
}

interface Tuple {
  readonly source: string;
  readonly destination: string;
  readonly protocol: number;
  readonly sourcePort: number;
  readonly port: number;
}

function parseFlow(payload: Buffer, family: IPFamily, question: FlowQuestion): Flow | undefined {
  if (payload.length < NFGENMSG_LENGTH || payload[0] !== AF[family]) return undefined;
  const [asked, answered] = [CTA.tupleOrig, CTA.tupleReply].map((type) =>
    parseTuple(findAttribute(payload, type, NFGENMSG_LENGTH), family),
  );
  if (asked === undefined || answered === undefined) return undefined;
  const { protocol, source, destination, port } = question;
  if (asked.protocol !== PROTOCOLS[protocol] || asked.source !== source || asked.destination !== destination || asked.port !== port)
    return undefined;
  const status = findAttribute(payload, CTA.status, NFGENMSG_LENGTH)?.readUInt32BE(0) ?? 0;
  const isAnswered = (status & SEEN_REPLY) !== 0;
  const info = findAttribute(payload, CTA.protocolInfo, NFGENMSG_LENGTH);
  const tcp = info && findAttribute(info, INFO.tcp);
  const tcpState = tcp && findAttribute(tcp, INFO.tcpState)?.readUInt8(0);
  const secondsLeft = findAttribute(payload, CTA.timeout, NFGENMSG_LENGTH)?.readUInt32BE(0);
  return {
    source,
    sourcePort: asked.sourcePort,
    answerer: answered.source,
    answererPort: answered.sourcePort,
    isAnswered,
    ...(tcpState === undefined ? {} : { tcpState }),
    ...(secondsLeft === undefined ? {} : { secondsLeft }),
  };
}

function parseTuple(tuple: Buffer | undefined, family: IPFamily): Tuple | undefined {
  const ip = tuple && findAttribute(tuple, TUPLE.ip);
  const proto = tuple && findAttribute(tuple, TUPLE.proto);
  const [source, destination] = [IP_SOURCE[family], IP_DESTINATION[family]].map((type) => ip && findAttribute(ip, type));
  const [sourcePort, port] = [PROTO.sourcePort, PROTO.destinationPort].map((type) => proto && findAttribute(proto, type));
  const protocol = proto && findAttribute(proto, PROTO.number);
  if (source === undefined || destination === undefined || sourcePort === undefined || port === undefined || protocol === undefined)
    return undefined;
  return {
    source: ipText(source),
    destination: ipText(destination),
    protocol: protocol.readUInt8(0),
    sourcePort: sourcePort.readUInt16BE(0),
    port: port.readUInt16BE(0),
  };
}
