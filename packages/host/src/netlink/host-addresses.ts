import { canonicalIP, invariant } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { NetlinkChannel, OnReply } from "./channel.ts";
import { errno, kernelError } from "./errno.ts";
import { findAttribute, zeroTerminated } from "./message.ts";

/** Address family numbers. @source linux/socket.h */
export const AF: Readonly<Record<IPFamily, number>> = { IPv4: 2, IPv6: 10 };

// Message types, attribute types and header lengths. @source linux/rtnetlink.h, linux/if_addr.h, linux/if_link.h
const RTM = { getLink: 18, getAddress: 22 } as const;
const IFA = { address: 1, local: 2 } as const;
const IFINFOMSG_LENGTH = 16;
const IFLA_IFNAME = 3;

/** How long the header of a message about an address is. @source linux/if_addr.h */
export const IFADDRMSG_LENGTH = 8;

/** An address of the host, and the link it is on. */
export interface HostAddress {
  /** Canonical. */
  readonly ip: string;
  readonly prefixLength: number;
  /** The link's name, e.g. `eth0`. */
  readonly link: string;
}

/** An address of the host as rtnetlink gives it: the link by its index. */
export interface IndexedAddress {
  readonly ip: string;
  readonly prefixLength: number;
  readonly linkIndex: number;
}

/**
 * Write an address as canonical text.
 *
 * Shape: 4 or 16 bytes in network order.
 */
export function ipText(bytes: Buffer): string {
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`;
  invariant(bytes.length === 16, "the kernel's addresses have 4 or 16 bytes");
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16));
  const canonical = canonicalIP(groups.join(":"));
  invariant(canonical !== undefined, "eight groups are an IPv6 address");
  return canonical.text;
}

/**
 * Read an RTM_NEWADDR payload.
 *
 * Edges: of a peer-to-peer address the local end counts; undefined when there is no address or it is of another family.
 */
export function parseAddress(payload: Buffer, family: IPFamily): IndexedAddress | undefined {
  if (payload.length < IFADDRMSG_LENGTH || payload[0] !== AF[family]) return undefined;
  const bytes = findAttribute(payload, IFA.local, IFADDRMSG_LENGTH) ?? findAttribute(payload, IFA.address, IFADDRMSG_LENGTH);
  if (bytes === undefined) return undefined;
  return { ip: ipText(bytes), prefixLength: payload.readUInt8(1), linkIndex: payload.readUInt32LE(4) };
}

/** Read an RTM_NEWLINK payload: a link's index and name. */
export function parseLink(payload: Buffer): { readonly index: number; readonly name: string } | undefined {
  if (payload.length < IFINFOMSG_LENGTH) return undefined;
  const name = findAttribute(payload, IFLA_IFNAME, IFINFOMSG_LENGTH);
  return name === undefined ? undefined : { index: payload.readInt32LE(4), name: zeroTerminated(name) };
}

/**
 * List the addresses of one family, tentative and deprecated ones too, in the kernel's order.
 *
 * Edges: an address whose link went away between the two dumps is left out.
 * @throws {ProxyError} what the channel throws, and the kernel's refusal.
 */
export async function listAddresses(channel: NetlinkChannel, family: IPFamily): Promise<readonly HostAddress[]> {
  const found = await consistentDump(channel, RTM.getAddress, addressRequest(family), "addresses", (payload) =>
    parseAddress(payload, family),
  );
  if (found.length === 0) return [];
  const links = await consistentDump(channel, RTM.getLink, Buffer.alloc(IFINFOMSG_LENGTH), "addresses", parseLink);
  const names = new Map(links.map((link) => [link.index, link.name]));
  return found.flatMap(({ ip, prefixLength, linkIndex }) => {
    const link = names.get(linkIndex);
    return link === undefined ? [] : [{ ip, prefixLength, link }];
  });
}

/** Write the request for all addresses of one family. */
export function addressRequest(family: IPFamily): Buffer {
  const request = Buffer.alloc(IFADDRMSG_LENGTH);
  request.writeUInt8(AF[family], 0);
  return request;
}

/** Dump a table of `what`; once more when it changed meanwhile, and then what came counts. What fails with one of `absent` is empty. @throws {ProxyError} what the channel throws, and the kernel's refusal. */
export async function consistentDump<T>(
  channel: Pick<NetlinkChannel, "dump">,
  type: number,
  request: Buffer,
  what: string,
  parse: (payload: Buffer) => T | undefined,
  absent: readonly number[] = [],
): Promise<readonly T[]> {
  for (let attempt = 1; ; attempt++) {
    const found: T[] = [];
    const onReply: OnReply = (_, payload) => {
      const parsed = parse(payload);
      if (parsed !== undefined) found.push(parsed);
    };
    const end = await channel.dump(type, request, onReply);
    if (absent.includes(end.errno)) return [];
    if (end.errno !== 0 && end.errno !== errno("EINTR")) throw kernelError(end.errno, `${what} can't be listed`);
    if (attempt === 2 || (!end.interrupted && end.errno === 0)) return found;
  }
}
