import { createHash } from "node:crypto";
import { printableName } from "@turnout/core";
import type { ServicePortName } from "@turnout/core";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LENGTH = 16;

/** The first 16 base32 characters (RFC 4648) of a text's SHA-256, as kube-proxy names its chains. */
export function hash16(text: string): string {
  const digest = createHash("sha256").update(text).digest();
  let name = "";
  for (let bit = 0; name.length < LENGTH; bit += 5) {
    const pair = (digest[bit >> 3] ?? 0) * 256 + (digest[(bit >> 3) + 1] ?? 0);
    name += ALPHABET[(pair >> (11 - (bit & 7))) & 31];
  }
  return name;
}

/** The prefixes of chains that belong to one Service port: cluster pool, local pool, external policy, source ranges. */
export type ServiceChainPrefix = "KUBE-SVC-" | "KUBE-SVL-" | "KUBE-EXT-" | "KUBE-FW-";

/** Name of one of a Service port's chains. */
export function serviceChain(prefix: ServiceChainPrefix, name: ServicePortName): string {
  return `${prefix}${hash16(`${printableName(name)}${name.protocol.toLowerCase()}`)}`;
}

/** Name of the chain of one endpoint; `endpoint` is `ip:port`, IPv6 in brackets. */
export function endpointChain(name: ServicePortName, endpoint: string): string {
  return `KUBE-SEP-${hash16(`${printableName(name)}${name.protocol.toLowerCase()}${endpoint}`)}`;
}
