import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { CIDR, IP, IPFamily } from "@turnout/core";
import { badRule } from "./rule.ts";
import type { Wanted } from "./rule.ts";

/** How many bits an address has. */
export const BITS: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };

/**
 * Read `address`, `address/length` or `address/mask`; bits beyond the mask are cleared.
 *
 * Edges: the shortened and octal forms of IPv4, and IPv4 in IPv6's mapped form, are refused here though the tools take them.
 * @throws {ProxyError} `invalid_object`.
 */
export function readNetwork(text: string, family: IPFamily): CIDR {
  const [address = "", mask = String(BITS[family])] = text.split("/", 2);
  const cidr = parseCIDR(`${address}/${/^\d{1,3}$/.test(mask) ? mask : lengthOfMask(mask, family)}`);
  if (cidr?.family !== family) throw badRule(`host/network \`${text}' not found`);
  return cidr;
}

function lengthOfMask(text: string, family: IPFamily): number | undefined {
  const mask = parseIP(text);
  if (mask?.family !== family) return undefined;
  const bits = mask.value.toString(2).padStart(BITS[family], "0");
  return /^1*0*$/.test(bits) ? bits.lastIndexOf("1") + 1 : undefined;
}

/** The addresses that were read last: those of one packet are asked for by every rule. */
const READ = new Map<string, IP | undefined>();
const READ_MAX = 1_000;

/** Read an address that was perhaps read before. */
export function readAddress(text: string): IP | undefined {
  if (READ.has(text)) return READ.get(text);
  if (READ.size >= READ_MAX) READ.clear();
  const ip = parseIP(text);
  READ.set(text, ip);
  return ip;
}

/** Whether an address is in a network; undefined: the address isn't known. */
export function isInNetwork(address: string | undefined, wanted: Wanted<CIDR> | undefined): boolean | undefined {
  if (address === undefined || wanted === undefined) return undefined;
  const ip = readAddress(address);
  return ip !== undefined && cidrContains(wanted.value, ip);
}
