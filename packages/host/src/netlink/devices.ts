import { invariant, parseCIDR } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { NetlinkChannel } from "./channel.ts";
import { AF, consistentDump, ipText } from "./host-addresses.ts";
import { findAttribute, zeroTerminated } from "./message.ts";

// Message types, attributes, lengths of headers. @source linux/rtnetlink.h, linux/if_link.h, linux/if.h
const RTM = { getLink: 18, getRoute: 26 } as const;
const IFINFOMSG_LENGTH = 16;
const IFLA = { name: 3, master: 10, linkInfo: 18, namespace: 37 } as const;
const IFLA_INFO_KIND = 1;
const IFF = { up: 0x1, loopback: 0x8, lowerUp: 0x1_0000 } as const;
/** @source linux/net_namespace.h NETNSA_NSID_NOT_ASSIGNED */
const NO_NAMESPACE = -1;
const RTMSG_LENGTH = 12;
const RTNEXTHOP_LENGTH = 8;
const RTA = { destination: 1, device: 4, gateway: 5, multipath: 9, table: 15, via: 18 } as const;
const RTN_UNICAST = 1;
const MAIN_TABLE = 254;

/** A device of this network namespace. */
export interface Device {
  readonly index: number;
  /** E.g. `eth0`; it may change. */
  readonly name: string;
  /** E.g. `bridge`, `bond`, `veth`; "" for a device of hardware. */
  readonly kind: string;
  /** The index of the device of which it is a port, e.g. a bridge's; undefined: it is none's. */
  readonly master: number | undefined;
  readonly isLoopback: boolean;
  readonly isUp: boolean;
  /** The link beneath it is there: of a pair of devices the other one is up. */
  readonly hasCarrier: boolean;
  /** The number by which this network namespace knows the one in which the other end of a pair of devices is; absent: it is in this one, or there is none. */
  readonly namespace?: number;
}

/** One way of a route of the main table. */
export interface DeviceRoute {
  /** A canonical CIDR. */
  readonly destination: string;
  /** The index of the device by which packets go out. */
  readonly device: number;
  /** Packets go to a router; else to the destination itself. */
  readonly hasGateway: boolean;
}

/** Read an RTM_NEWLINK payload. */
export function parseDevice(payload: Buffer): Device | undefined {
  if (payload.length < IFINFOMSG_LENGTH) return undefined;
  const name = findAttribute(payload, IFLA.name, IFINFOMSG_LENGTH);
  if (name === undefined) return undefined;
  const info = findAttribute(payload, IFLA.linkInfo, IFINFOMSG_LENGTH);
  const kind = info === undefined ? undefined : findAttribute(info, IFLA_INFO_KIND);
  const flags = payload.readUInt32LE(8);
  const namespace = findAttribute(payload, IFLA.namespace, IFINFOMSG_LENGTH)?.readInt32LE(0) ?? NO_NAMESPACE;
  return {
    index: payload.readInt32LE(4),
    name: zeroTerminated(name),
    kind: kind === undefined ? "" : zeroTerminated(kind),
    master: findAttribute(payload, IFLA.master, IFINFOMSG_LENGTH)?.readUInt32LE(0),
    isLoopback: (flags & IFF.loopback) !== 0,
    isUp: (flags & IFF.up) !== 0,
    hasCarrier: (flags & IFF.lowerUp) !== 0,
    ...(namespace === NO_NAMESPACE ? {} : { namespace }),
  };
}

/**
 * Read an RTM_NEWROUTE payload: a way for each device.
 *
 * Edges: none of another family or table, and of what isn't sent on to somebody (unreachable, local).
 */
export function parseRoute(payload: Buffer, family: IPFamily): readonly DeviceRoute[] {
  if (payload.length < RTMSG_LENGTH || payload[0] !== AF[family] || payload[7] !== RTN_UNICAST) return [];
  const table = findAttribute(payload, RTA.table, RTMSG_LENGTH)?.readUInt32LE(0) ?? payload.readUInt8(4);
  if (table !== MAIN_TABLE) return [];
  const bytes = findAttribute(payload, RTA.destination, RTMSG_LENGTH) ?? Buffer.alloc(family === "IPv4" ? 4 : 16);
  const destination = parseCIDR(`${ipText(bytes)}/${payload.readUInt8(1)}`)?.text;
  invariant(destination !== undefined, "the kernel's routes have an address and its length");
  const wayOf = (device: number, attributes: Buffer, offset: number): DeviceRoute => ({
    destination,
    device,
    hasGateway: [RTA.gateway, RTA.via].some((one) => findAttribute(attributes, one, offset) !== undefined),
  });
  const device = findAttribute(payload, RTA.device, RTMSG_LENGTH)?.readUInt32LE(0);
  if (device !== undefined) return [wayOf(device, payload, RTMSG_LENGTH)];
  const several = findAttribute(payload, RTA.multipath, RTMSG_LENGTH) ?? Buffer.alloc(0);
  const ways: DeviceRoute[] = [];
  for (let at = 0; at + RTNEXTHOP_LENGTH <= several.length;) {
    const length = several.readUInt16LE(at);
    if (length < RTNEXTHOP_LENGTH) break;
    ways.push(wayOf(several.readInt32LE(at + 4), several.subarray(at, at + length), RTNEXTHOP_LENGTH));
    at += (length + 3) & ~3;
  }
  return ways;
}

/** List the devices, in the kernel's order. @throws {ProxyError} what the channel throws, and the kernel's refusal. */
export function listDevices(channel: NetlinkChannel): Promise<readonly Device[]> {
  return consistentDump(channel, RTM.getLink, Buffer.alloc(IFINFOMSG_LENGTH), "devices", parseDevice);
}

/** List the ways of the main table's routes. @throws {ProxyError} as {@link listDevices}. */
export async function listRoutes(channel: NetlinkChannel, family: IPFamily): Promise<readonly DeviceRoute[]> {
  const request = Buffer.alloc(RTMSG_LENGTH);
  request.writeUInt8(AF[family], 0);
  return (await consistentDump(channel, RTM.getRoute, request, "routes", (payload) => parseRoute(payload, family))).flat();
}
