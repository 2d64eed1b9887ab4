import { unsigned32 } from "./extension.ts";
import { badRule } from "./rule.ts";

/** Protocols by number, where /etc/protocols has a name for them; others stay numbers. */
const PROTOCOLS: Readonly<Record<string, string>> = {
  "1": "icmp",
  "6": "tcp",
  "17": "udp",
  "33": "dccp",
  "47": "gre",
  "50": "esp",
  "51": "ah",
  "58": "ipv6-icmp",
  "132": "sctp",
  "136": "udplite",
};

/** The number of a protocol that {@link protocolName} named; 0 for `all`. */
export function protocolNumber(name: string): number {
  const known = Object.entries(PROTOCOLS).find(([, word]) => word === name)?.[0];
  return name === "all" ? 0 : Number(known ?? name);
}

/** Name a protocol as it is saved; `all` for any. @throws {ProxyError} `invalid_object`. */
export function protocolName(text: string): string {
  const word = text.toLowerCase();
  if (word === "all" || word === "0") return "all";
  if (Object.values(PROTOCOLS).includes(word)) return word;
  if (word === "icmpv6") return "ipv6-icmp";
  const number = unsigned32(word);
  if (number === undefined || number > 255) throw badRule(`unknown protocol "${word}" specified`);
  return PROTOCOLS[String(number)] ?? String(number);
}
