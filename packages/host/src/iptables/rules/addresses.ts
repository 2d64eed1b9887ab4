import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { CIDR, IP, IPFamily } from "@turnout/core";
import { badRule } from "./rule.ts";
import type { Wanted } from "./rule.ts";

/** How many bits an address has. */
export const BITS: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };

/**
 * Read `address` or `address/length`; bits beyond the length are cleared.
 *
 * Edges: masks, the shortened and octal forms of IPv4, and IPv4 in IPv6's mapped form, are refused here though the tools take them.
 * @throws {ProxyError} `invalid_object`.
 */
export function readNetwork(text: string, family: IPFamily): CIDR {
  const cidr = parseCIDR(text.includes("/") ? text : `${text}/${BITS[family]}`);
  if (cidr?.family !== family) throw badRule(`host/network \`${text}' not found`);
  return cidr;
}

/** The addresses that were read last: those of one packet are asked for by every rule. */
const READ = new Map<string, IP | undefined>();
const READ_MAX = 1_000;

function readAddress(text: string): IP | undefined {
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
