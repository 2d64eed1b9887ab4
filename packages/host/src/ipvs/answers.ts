import { FAMILIES } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";
import { AF, ipText } from "../netlink/host-addresses.ts";
import { findAttribute, zeroTerminated } from "../netlink/message.ts";
import { GENL_HEADER_LENGTH } from "../netlink/generic.ts";
import { ATTR, DEST, HASHED_FLAG, INFO, PROTOCOL_NUMBER, STATS, SVC } from "./constants.ts";
import { FORWARDING } from "./model/model.ts";
import type { IpvsTimeouts, RealServer, VirtualServerCounts, VirtualServerKey, VirtualServerSettings } from "./model/model.ts";

const ADDRESS_LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 4, IPv6: 16 };
const FORWARDING_MASK = 0x7;

/** A virtual server as netlink gives it: without its real servers. */
export type ServiceAnswer = VirtualServerKey & VirtualServerSettings;

/**
 * Read one virtual server.
 *
 * Edges: undefined for one of a protocol that Services don't have, and for what isn't a virtual server.
 */
export function parseService(payload: Buffer): ServiceAnswer | { readonly family: IPFamily; readonly firewallMark: number } | undefined {
  const body = findAttribute(payload, ATTR.service, GENL_HEADER_LENGTH);
  const family = body && familyOf(findAttribute(body, SVC.family));
  if (body === undefined || family === undefined) return undefined;
  const mark = findAttribute(body, SVC.firewallMark);
  if (mark !== undefined) return { family, firewallMark: mark.readUInt32LE(0) };
  const protocol = protocolOf(findAttribute(body, SVC.protocol)?.readUInt16LE(0));
  const address = findAttribute(body, SVC.address);
  const scheduler = findAttribute(body, SVC.scheduler);
  if (protocol === undefined || address === undefined || scheduler === undefined) return undefined;
  return {
    family,
    protocol,
    address: ipText(address.subarray(0, ADDRESS_LENGTH[family])),
    port: findAttribute(body, SVC.port)?.readUInt16BE(0) ?? 0,
    scheduler: zeroTerminated(scheduler),
    flags: ((findAttribute(body, SVC.flags)?.readUInt32LE(0) ?? 0) & ~HASHED_FLAG) >>> 0,
    timeoutSeconds: findAttribute(body, SVC.timeout)?.readUInt32LE(0) ?? 0,
    clientPrefixLength: prefixLengthOf(family, findAttribute(body, SVC.netmask)),
  };
}

/** Read what was counted for a virtual server; undefined where the message holds no counters. */
export function parseCounts(payload: Buffer): VirtualServerCounts | undefined {
  const body = findAttribute(payload, ATTR.service, GENL_HEADER_LENGTH);
  // Linux before 4.1 has those of 32 bits alone, of which bytes have 64 all the same.
  const stats = body && (findAttribute(body, SVC.stats64) ?? findAttribute(body, SVC.stats));
  if (stats === undefined) return undefined;
  const number = (type: number): number => {
    const bytes = findAttribute(stats, type);
    return bytes === undefined ? 0 : bytes.length >= 8 ? Number(bytes.readBigUInt64LE(0)) : bytes.readUInt32LE(0);
  };
  return { connections: number(STATS.connections), bytesIn: number(STATS.bytesIn), bytesOut: number(STATS.bytesOut) };
}

/** Read one real server of a virtual server of `family`; undefined when it isn't one, or is of the other family (a tunnel's may be). */
export function parseRealServer(payload: Buffer, family: IPFamily): RealServer | undefined {
  const body = findAttribute(payload, ATTR.dest, GENL_HEADER_LENGTH);
  const address = body && findAttribute(body, DEST.address);
  if (body === undefined || address === undefined) return undefined;
  const own = findAttribute(body, DEST.family);
  if (own !== undefined && familyOf(own) !== family) return undefined;
  const number = (type: number): number => findAttribute(body, type)?.readUInt32LE(0) ?? 0;
  return {
    address: ipText(address.subarray(0, ADDRESS_LENGTH[family])),
    port: findAttribute(body, DEST.port)?.readUInt16BE(0) ?? 0,
    weight: number(DEST.weight) | 0,
    forward: FORWARDING[number(DEST.forward) & FORWARDING_MASK] ?? "bypass",
    activeConnections: number(DEST.activeConnections),
    inactiveConnections: number(DEST.inactiveConnections),
  };
}

/** Read the timeouts; undefined when the message holds none. */
export function parseTimeouts(payload: Buffer): IpvsTimeouts | undefined {
  const [tcp, tcpFin, udp] = [ATTR.timeoutTcp, ATTR.timeoutTcpFin, ATTR.timeoutUdp].map((type) =>
    findAttribute(payload, type, GENL_HEADER_LENGTH)?.readUInt32LE(0),
  );
  return tcp === undefined || tcpFin === undefined || udp === undefined ? undefined : { tcp, tcpFin, udp };
}

/** Read the kernel's version of IPVS, e.g. `1.2.1`; undefined when the message holds none. */
export function parseVersion(payload: Buffer): string | undefined {
  const code = findAttribute(payload, INFO.version, GENL_HEADER_LENGTH)?.readUInt32LE(0);
  return code === undefined ? undefined : `${(code >> 16) & 0xff}.${(code >> 8) & 0xff}.${code & 0xff}`;
}

function familyOf(bytes: Buffer | undefined): IPFamily | undefined {
  const number = bytes?.readUInt16LE(0);
  return FAMILIES.find((family) => AF[family] === number);
}

function protocolOf(number: number | undefined): Protocol | undefined {
  return (Object.keys(PROTOCOL_NUMBER) as readonly Protocol[]).find((protocol) => PROTOCOL_NUMBER[protocol] === number);
}

/** Of an IPv4 mask with gaps the leading ones count. */
function prefixLengthOf(family: IPFamily, bytes: Buffer | undefined): number {
  if (bytes === undefined) return family === "IPv4" ? 32 : 128;
  return family === "IPv6" ? bytes.readUInt32LE(0) : Math.clz32(~bytes.readUInt32BE(0));
}
