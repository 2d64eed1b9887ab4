import { hash } from "node:crypto";
import { printableName } from "@turnout/core";
import type { ServicePortName } from "@turnout/core";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LENGTH = 16;

/** The first 16 base32 characters (RFC 4648) of a text's SHA-256, as kube-proxy names its chains. */
export function hash16(text: string): string {
  // A character for each byte: a sixth of the time of a hash object and a Buffer, and 10,000 Services of 10 endpoints have 120,000 names.
  const digest = hash("sha256", text, "binary");
  let name = "";
  for (let bit = 0; name.length < LENGTH; bit += 5) {
    const pair = digest.charCodeAt(bit >> 3) * 256 + digest.charCodeAt((bit >> 3) + 1);
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
