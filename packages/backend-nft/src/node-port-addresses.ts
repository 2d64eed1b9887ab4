import { cidrContains, familyOf, parseCIDR, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";

const LOOPBACK: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.0/8", IPv6: "::1/128" };
const ZERO: Readonly<Record<IPFamily, string>> = { IPv4: "0.0.0.0/0", IPv6: "::/0" };

/**
 * Resolve nodePortAddresses to the addresses that answer node ports, in one family.
 *
 * Shape: `all` means every local address but loopback; otherwise canonical host addresses, never loopback.
 * Edges: unset means `primary` (nftables' default); a family without a CIDR of its own is match-all, also when `primary`
 * finds no address (subtlety 12); a zero CIDR makes everything match.
 * @source semantics.md 4.2; rules R-37, R-38
 */
export function nodePortAddresses(
  wanted: readonly string[] | undefined,
  family: IPFamily,
  nodeAddresses: readonly string[],
  hostAddresses: readonly string[],
): "all" | readonly string[] {
  const cidrs = (wanted ?? ["primary"])
    .flatMap((entry) => keyword(entry, family, nodeAddresses))
    .flatMap((text) => parseCIDR(text) ?? [])
    .filter((cidr) => cidr.family === family);
  if (cidrs.length === 0 || cidrs.some(({ prefixLength }) => prefixLength === 0)) return "all";
  const loopback = parseCIDR(LOOPBACK[family]);
  const selected = hostAddresses.filter((address) => {
    const ip = parseIP(address);
    if (ip === undefined || (loopback !== undefined && cidrContains(loopback, ip))) return false;
    return cidrs.some((cidr) => cidrContains(cidr, ip));
  });
  return [...new Set(selected)].sort();
}

function keyword(entry: string, family: IPFamily, nodeAddresses: readonly string[]): readonly string[] {
  if (entry === "all") return [ZERO[family]];
  if (entry === "localhost") return [LOOPBACK[family]];
  if (entry !== "primary") return [entry];
  const primary = nodeAddresses.find((address) => familyOf(address) === family);
  return primary === undefined ? [] : [`${primary}/${family === "IPv4" ? 32 : 128}`];
}
