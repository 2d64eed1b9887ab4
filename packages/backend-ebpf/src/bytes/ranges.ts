import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import type { NodeContext } from "@turnout/core/backend";
import { ADDRESS_FLAGS, decodeAddress, encodeAddress, encodeId, STRUCTS } from "./layout.ts";
import type { AddressUse } from "../objects.ts";

/** Of the 128 bits of an address, IPv4 has the last 32. */
const BEFORE_IPV4 = 96;
/** The name of the ranges comes before the address. */
const ID_BITS = 64;

/** A CIDR as `struct pod_range`. @throws {ProxyError} `invalid_object`. */
export function encodePodRange(cidr: string): Buffer {
  const { bytes, fields } = STRUCTS.pod_range;
  const { bits, address } = bitsOf(cidr);
  const range = Buffer.alloc(bytes);
  range.writeUInt32LE(bits, fields.bits[0]);
  address.copy(range, fields.address[0]);
  return range;
}

/** Undoes {@link encodePodRange}; canonical. Undefined for bits that no range of ours has. */
export function decodePodRange(bytes: Buffer): string | undefined {
  const { bits, address } = STRUCTS.pod_range.fields;
  return cidrOf(bytes.readUInt32LE(bits[0]), bytes.subarray(address[0], address[0] + address[1]));
}

/** A CIDR of the ranges of this name as `struct source_range`. @throws {ProxyError} `invalid_object`. */
export function encodeSourceRange(id: string, cidr: string): Buffer {
  const { bytes, fields } = STRUCTS.source_range;
  const { bits, address } = bitsOf(cidr);
  const range = Buffer.alloc(bytes);
  range.writeUInt32LE(ID_BITS + bits, fields.bits[0]);
  encodeId(id).copy(range, fields.ranges[0]);
  address.copy(range, fields.address[0]);
  return range;
}

/** Undoes {@link encodeSourceRange}; undefined for bits that no range of ours has. */
export function decodeSourceRange(bytes: Buffer): { readonly id: string; readonly cidr: string } | undefined {
  const { bits, ranges, address } = STRUCTS.source_range.fields;
  const cidr = cidrOf(bytes.readUInt32LE(bits[0]) - ID_BITS, bytes.subarray(address[0], address[0] + address[1]));
  return cidr === undefined ? undefined : { id: bytes.toString("hex", ranges[0], ranges[0] + ranges[1]), cidr };
}

/** CIDRs in the order in which ranges have them: that of their bytes. */
export function sortCIDRs(cidrs: readonly string[]): readonly string[] {
  return cidrs
    .map((text) => ({ text, bytes: encodePodRange(text) }))
    .toSorted((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ text }) => text);
}

/** Tell whether an address or a CIDR lies in a CIDR; false for another text. Pure. */
export function isInside(text: string, range: string): boolean {
  const outer = parseCIDR(range);
  const inner = parseCIDR(text);
  const ip = inner === undefined ? parseIP(text) : { ...inner, text };
  return (
    outer !== undefined && ip !== undefined && (inner?.prefixLength ?? outer.prefixLength) >= outer.prefixLength && cidrContains(outer, ip)
  );
}

/**
 * Say in which ranges pods of this node may be: those that it was given, and those by which detect-local tells pods. A CNI that hands out addresses by
 * itself keeps to the latter alone. Pure.
 */
export function podRangesOf({ podCIDRs, detector }: Pick<NodeContext, "podCIDRs" | "detector">): readonly string[] {
  return [...new Set([...podCIDRs, ...(detector?.by === "cidr" ? detector.cidrs : [])])];
}

/** A value of `node_addresses`. */
export function encodeAddressFlags({ hasNodePorts, hasListeners }: AddressUse): Buffer {
  const { OWN, NODE_PORTS, LISTENERS } = ADDRESS_FLAGS;
  const flags = Buffer.alloc(4);
  flags.writeUInt32LE(OWN | (hasNodePorts ? NODE_PORTS : 0) | (hasListeners ? LISTENERS : 0));
  return flags;
}

/** Undoes {@link encodeAddressFlags}; undefined for flags that are none of ours. */
export function decodeAddressFlags(bytes: Buffer): AddressUse | undefined {
  const flags = bytes.readUInt32LE(0);
  const use = { hasNodePorts: (flags & ADDRESS_FLAGS.NODE_PORTS) !== 0, hasListeners: (flags & ADDRESS_FLAGS.LISTENERS) !== 0 };
  return encodeAddressFlags(use).equals(bytes) ? use : undefined;
}

function bitsOf(text: string): { readonly bits: number; readonly address: Buffer } {
  const cidr = parseCIDR(text);
  if (cidr === undefined) throw new ProxyError("invalid_object", "this is no CIDR", { object: text });
  const address = encodeAddress(cidr.text.slice(0, cidr.text.indexOf("/")));
  return { bits: cidr.prefixLength + (cidr.family === "IPv4" ? BEFORE_IPV4 : 0), address };
}

function cidrOf(bits: number, address: Buffer): string | undefined {
  const ip = decodeAddress(address);
  return parseCIDR(`${ip}/${ip.includes(":") ? bits : bits - BEFORE_IPV4}`)?.text;
}
