import type { IPFamily, Protocol } from "@turnout/core";
import type { NetlinkChannel } from "../channel.ts";
import { CT, CTA, dumpRequest, NFGENMSG_LENGTH, parseTuple } from "./conntrack.ts";
import { kernelError } from "../errno.ts";
import { AF } from "../host-addresses.ts";
import { findAttribute } from "../message.ts";

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

/** Attributes of what is specific to a protocol. @source linux/netfilter/nfnetlink_conntrack.h */
const INFO = { tcp: 1, tcpState: 1 } as const;
const PROTOCOLS: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };
/** IPS_SEEN_REPLY. */
const SEEN_REPLY = 1 << 1;
const FLOWS_MAX = 1_000;

/**
 * List a client's conntrack entries to one address and port; at most a thousand.
 * @throws {ProxyError} `permission_denied`, `host_unsupported`, `tool_failed`.
 */
export async function listFlows(channel: Pick<NetlinkChannel, "dump">, family: IPFamily, question: FlowQuestion): Promise<readonly Flow[]> {
  const flows: Flow[] = [];
  const { source, destination, port } = question;
  // Linux compares IPv6 addresses the wrong way round (ctnetlink_filter_match_tuple, seen on 6.18).
  const ends = family === "IPv4" ? { source, destination } : {};
  const request = dumpRequest(family, { protocol: PROTOCOLS[question.protocol], port, ...ends });
  const end = await channel.dump(CT.dump, request, (_, payload) => {
    const flow = flows.length < FLOWS_MAX ? parseFlow(payload, family, question) : undefined;
    if (flow !== undefined) flows.push(flow);
  });
  if (end.errno !== 0) throw kernelError(end.errno, "connections can't be listed");
  return flows;
}

function parseFlow(payload: Buffer, family: IPFamily, question: FlowQuestion): Flow | undefined {
  if (payload.length < NFGENMSG_LENGTH || payload[0] !== AF[family]) return undefined;
  const [asked, answered] = [CTA.tupleOrig, CTA.tupleReply].map((type) =>
    parseTuple(findAttribute(payload, type, NFGENMSG_LENGTH), family),
  );
  if (asked === undefined || answered === undefined) return undefined;
  const { protocol, source, destination, port } = question;
  if (asked.protocol !== PROTOCOLS[protocol] || asked.source() !== source || asked.destination() !== destination || asked.port !== port)
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
    answerer: answered.source(),
    answererPort: answered.sourcePort,
    isAnswered,
    ...(tcpState === undefined ? {} : { tcpState }),
    ...(secondsLeft === undefined ? {} : { secondsLeft }),
  };
}
