import type { CIDR, IPFamily, Protocol } from "@turnout/core";

const HALVES: Readonly<Record<IPFamily, readonly string[]>> = { IPv4: ["0.0.0.0/1", "128.0.0.0/1"], IPv6: ["::/1", "8000::/1"] };
const ADDRESS_BITS: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };

/** An entry of a `hash:ip,port`, in ipset's own spelling: `10.96.0.10,tcp:80`. */
export function portEntry(address: string, protocol: Protocol, port: number): string {
  return `${address},${protocol.toLowerCase()}:${port}`;
}

/**
 * Write a network as entries spell it.
 *
 * Shape: nearly always one text; a whole address has no prefix length. Edges: the network of all addresses is two, its halves, because no hash
 * holds a prefix length of 0. kube-proxy gave it to ipset, which refused it, and leaves it out since 1.34 (k/k#132722).
 */
export function netEntries({ text, family, prefixLength }: CIDR): readonly string[] {
  if (prefixLength === 0) return HALVES[family];
  return [prefixLength === ADDRESS_BITS[family] ? text.slice(0, text.indexOf("/")) : text];
}
