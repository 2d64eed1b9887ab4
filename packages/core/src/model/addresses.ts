import type { IPFamily } from "./api-objects.ts";

/** A parsed address: canonical text (RFC 5952 for IPv6), its family, and its value as an unsigned integer. */
export interface IP {
  readonly text: string;
  readonly family: IPFamily;
  readonly value: bigint;
}

/** A parsed CIDR with host bits cleared; `text` is canonical `address/prefix`. */
export interface CIDR {
  readonly text: string;
  readonly family: IPFamily;
  readonly value: bigint;
  readonly prefixLength: number;
}

/** Four octets without leading zeros. */
const CANONICAL_IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const IPV4 = /^(\d{1,10})\.(\d{1,10})\.(\d{1,10})\.(\d{1,10})$/;
const MAPPED_PREFIX = 0xffffn;

/**
 * Canonicalise an address as the API server's lenient parser reads it.
 *
 * Edges: IPv4 octets may have leading zeros and are decimal (`010.1.2.3` is 10.1.2.3); IPv4-mapped IPv6 is IPv4;
 * zones (`fe80::1%eth0`), blanks and anything else give undefined. Never throws.
 * @source CVE-2021-29923; rule R-09
 */
export function canonicalIP(text: string): { readonly text: string; readonly family: IPFamily } | undefined {
  if (text.includes(":")) {
    const value = ipv6Value(text);
    if (value === undefined) return undefined;
    if (value >> 32n === MAPPED_PREFIX) return { text: ipv4Text(Number(value & 0xffffffffn)), family: "IPv4" };
    return { text: ipv6Text(value), family: "IPv6" };
  }
  // Nearly always, and ten times an event: the text itself then serves, and nothing is made.
  if (CANONICAL_IPV4.test(text)) return { text, family: "IPv4" };
  const octets = ipv4Octets(text);
  if (octets === undefined) return undefined;
  return { text: `${octets[0]}.${octets[1]}.${octets[2]}.${octets[3]}`, family: "IPv4" };
}

/** Parse an address to its value; same reading as {@link canonicalIP}. Never throws. */
export function parseIP(text: string): IP | undefined {
  const value = text.includes(":") ? ipv6Value(text) : undefined;
  if (value !== undefined && value >> 32n !== MAPPED_PREFIX) return { text: ipv6Text(value), family: "IPv6", value };
  const canonical = canonicalIP(text);
  if (canonical === undefined) return undefined;
  return { ...canonical, value: valueOf(canonical.text, canonical.family) };
}

/**
 * Parse a CIDR; surrounding blanks are ignored and host bits are cleared.
 *
 * Edges: the prefix length must be plain digits, at most 32 or 128; IPv4-mapped CIDRs are refused. Never throws.
 */
export function parseCIDR(text: string): CIDR | undefined {
  const trimmed = text.trim();
  const slash = trimmed.indexOf("/");
  if (slash < 0) return undefined;
  const lengthText = trimmed.slice(slash + 1);
  const ip = parseIP(trimmed.slice(0, slash));
  if (ip === undefined || !/^\d{1,3}$/.test(lengthText)) return undefined;
  if (ip.family === "IPv4" && trimmed.includes(":")) return undefined;
  const bits = addressBits(ip.family);
  const prefixLength = Number(lengthText);
  if (prefixLength > bits) return undefined;
  const shift = BigInt(bits - prefixLength);
  const value = (ip.value >> shift) << shift;
  return { text: `${ipText(value, ip.family)}/${prefixLength}`, family: ip.family, value, prefixLength };
}

/** Tell whether an address lies in a CIDR; false when the families differ. */
export function cidrContains(cidr: CIDR, ip: IP): boolean {
  return cidr.family === ip.family && covers(cidr, ip.value);
}

/** Drop every CIDR that another one covers, and sort the rest by value: disjoint ranges, same coverage. One family at a time. */
export function disjointCIDRs(cidrs: readonly CIDR[]): readonly CIDR[] {
  const sorted = cidrs.toSorted((a, b) => (a.value < b.value ? -1 : a.value > b.value ? 1 : a.prefixLength - b.prefixLength));
  const kept: CIDR[] = [];
  for (const cidr of sorted) {
    const last = kept.at(-1);
    if (last === undefined || last.prefixLength > cidr.prefixLength || !covers(last, cidr.value)) kept.push(cidr);
  }
  return kept;
}

/** The family a canonical address belongs to. */
export function familyOf(canonical: string): IPFamily {
  return canonical.includes(":") ? "IPv6" : "IPv4";
}

/**
 * Compare two canonical addresses of one family as {@link hostPort} with one port would be compared, in byte order.
 *
 * Shape: negative, 0 or positive. Makes no strings: it is asked for every endpoint of every change.
 */
export function compareAddresses(a: string, b: string): number {
  if (a === b) return 0;
  if (a.length === b.length) return a < b ? -1 : 1;
  // What follows the shorter one decides: ":" in IPv4, "]" in IPv6.
  const end = a.includes(":") ? 0x5d : 0x3a;
  if (b.startsWith(a)) return end - b.charCodeAt(a.length);
  if (a.startsWith(b)) return a.charCodeAt(b.length) - end;
  return a < b ? -1 : 1;
}

/**
 * The part of an address by which clients are counted: all of an IPv4 address, of IPv6 its /64, which one host may have whole.
 *
 * Edges: the zone of a link-local address does not count; text that is no address is returned as it is.
 */
export function clientNetwork(text: string): string {
  const [address = text] = text.split("%", 1);
  const ip = canonicalIP(address);
  if (ip?.family !== "IPv6") return ip?.text ?? text;
  return parseCIDR(`${ip.text}/64`)?.text ?? text;
}

/** Write `ip:port`, with brackets for IPv6. */
export function hostPort(ip: string, port: number): string {
  return ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`;
}

/**
 * Say why an address can never be a destination or an endpoint of a Service, if so.
 *
 * Shape: a canonical address in, one of the words below or undefined out.
 * @source CVE-2021-25737; rule R-52
 */
export function unusableReason(canonical: string): "loopback" | "link-local" | "multicast" | "broadcast" | "unspecified" | undefined {
  if (canonical.includes(":")) {
    if (canonical === "::1") return "loopback";
    if (canonical === "::") return "unspecified";
    // Groups have no leading zeros here: "fe8::" is 0fe8 and no link-local address.
    if (/^fe[89ab][0-9a-f]:/.test(canonical)) return "link-local";
    return /^ff[0-9a-f]{2}:/.test(canonical) ? "multicast" : undefined;
  }
  if (canonical.startsWith("127.")) return "loopback";
  if (canonical.startsWith("169.254.")) return "link-local";
  const first = Number.parseInt(canonical, 10);
  if (first === 0) return "unspecified";
  if (canonical === "255.255.255.255") return "broadcast";
  // 240.0.0.0/4 is left alone: some clouds number pods from it, and the kernel routes it.
  return first >= 224 && first < 240 ? "multicast" : undefined;
}

function addressBits(family: IPFamily): 32 | 128 {
  return family === "IPv4" ? 32 : 128;
}

function covers(cidr: CIDR, value: bigint): boolean {
  const shift = BigInt(addressBits(cidr.family) - cidr.prefixLength);
  return value >> shift === cidr.value >> shift;
}

function valueOf(canonical: string, family: IPFamily): bigint {
  if (family === "IPv6") return ipv6Value(canonical) ?? 0n;
  const octets = ipv4Octets(canonical) ?? [0, 0, 0, 0];
  return BigInt(octets[0] * 2 ** 24 + octets[1] * 2 ** 16 + octets[2] * 2 ** 8 + octets[3]);
}

function ipText(value: bigint, family: IPFamily): string {
  return family === "IPv4" ? ipv4Text(Number(value)) : ipv6Text(value);
}

function ipv4Text(value: number): string {
  return `${Math.floor(value / 2 ** 24)}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

function ipv4Octets(text: string): [number, number, number, number] | undefined {
  const match = IPV4.exec(text);
  if (match === null) return undefined;
  const octets: [number, number, number, number] = [Number(match[1]), Number(match[2]), Number(match[3]), Number(match[4])];
  return octets.every((octet) => octet <= 255) ? octets : undefined;
}

function ipv6Value(text: string): bigint | undefined {
  const groups = expandIPv6(text);
  if (groups === undefined) return undefined;
  let value = 0n;
  for (const group of groups) value = (value << 16n) | BigInt(group);
  return value;
}

function expandIPv6(text: string): readonly number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  // An IPv4 tail may only stand at the very end.
  if (halves.length === 2 && halves[0]?.includes(".") === true) return undefined;
  const head = ipv6Groups(halves[0] ?? "");
  const tail = halves.length === 2 ? ipv6Groups(halves[1] ?? "") : [];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1) return missing === 0 ? head : undefined;
  // "::" stands for at least one group (Go's parser agrees).
  return missing >= 1 ? [...head, ...new Array<number>(missing).fill(0), ...tail] : undefined;
}

function ipv6Groups(text: string): readonly number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    if (part.includes(".")) {
      const octets = index === parts.length - 1 ? ipv4Octets(part) : undefined;
      if (octets === undefined) return undefined;
      groups.push(octets[0] * 256 + octets[1], octets[2] * 256 + octets[3]);
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

function ipv6Text(value: bigint): string {
  const groups: number[] = [];
  for (let shift = 112n; shift >= 0n; shift -= 16n) groups.push(Number((value >> shift) & 0xffffn));
  const { start, length } = longestZeroRun(groups);
  const hex = groups.map((group) => group.toString(16));
  if (length < 2) return hex.join(":");
  return `${hex.slice(0, start).join(":")}::${hex.slice(start + length).join(":")}`;
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (let index = 0; index <= groups.length; index++) {
    if (groups[index] === 0) continue;
    if (index - start > best.length) best = { start, length: index - start };
    start = index + 1;
  }
  return best;
}
