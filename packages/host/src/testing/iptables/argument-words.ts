import { unsigned32 } from "./extension.ts";
import { usage } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";
import { STANDARD_TARGETS, TARGETS } from "./targets.ts";

/** What a command line asks for. */
export type Verb = "A" | "C" | "D" | "I" | "R" | "N" | "F" | "X" | "P" | "L" | "S" | "Z" | "V";

/** Long options that have a letter. */
export const LONG_OPTIONS: Readonly<Record<string, string>> = {
  append: "A",
  check: "C",
  delete: "D",
  insert: "I",
  replace: "R",
  "new-chain": "N",
  flush: "F",
  "delete-chain": "X",
  policy: "P",
  list: "L",
  "list-rules": "S",
  zero: "Z",
  version: "V",
  source: "s",
  src: "s",
  destination: "d",
  dst: "d",
  "in-interface": "i",
  "out-interface": "o",
  protocol: "p",
  proto: "p",
  match: "m",
  jump: "j",
  goto: "g",
  table: "t",
  wait: "w",
  numeric: "n",
  "set-counters": "c",
};

/** Characters of a chain's name. */
export const CHAIN_MAX = 28;
const LINK_MAX = 15;
/** Protocols by number, where /etc/protocols has a name for them; others stay numbers. */
const PROTOCOLS: Readonly<Record<string, string>> = {
  "1": "icmp",
  "6": "tcp",
  "17": "udp",
  "47": "gre",
  "50": "esp",
  "51": "ah",
  "58": "ipv6-icmp",
  "132": "sctp",
  "136": "udplite",
};
/** Tell whether a letter is a verb's. */
export function isVerb(letter: string): letter is Verb {
  return letter.length === 1 && "ACDIRNFXPLSZV".includes(letter);
}

/** What is said of DROP in the nat table. */
export function notForFiltering(): Refusal {
  return usage('\nThe "nat" table is not intended for filtering, the use of DROP is therefore inhibited.\n\n');
}

/** Read the number of a rule. @throws {Refusal}. */
export function ruleNumber(text: string): number {
  const number = unsigned32(text);
  if (number === undefined || number === 0 || number > 0x7fff_ffff) throw usage(`Invalid rule number \`${text}'`);
  return number;
}

/** Check the name of a chain that somebody makes. @throws {Refusal}. */
export function checkNewName(name: string): void {
  if (name.startsWith("-") || name.startsWith("!")) throw usage(`chain name not allowed to start with \`${name.charAt(0)}'`);
  if (STANDARD_TARGETS.has(name) || TARGETS.has(name)) throw usage("chain name may not clash with target name");
}

/** Check the name of a link. @throws {Refusal}. */
export function linkName(text: string): string {
  if (text === "") throw usage("Empty interface is likely to be undesired");
  if (text.length > LINK_MAX) throw usage(`interface name \`${text}' must be shorter than IFNAMSIZ (${LINK_MAX})`);
  return text;
}

/** The number of a protocol that {@link protocolName} named; 0 for `all`. */
export function protocolNumber(name: string): number {
  const known = Object.entries(PROTOCOLS).find(([, word]) => word === name)?.[0];
  return name === "all" ? 0 : Number(known ?? name);
}

/** Name a protocol as it is saved; `all` for any. @throws {Refusal}. */
export function protocolName(text: string): string {
  const word = text.toLowerCase();
  if (word === "all" || word === "0") return "all";
  if (Object.values(PROTOCOLS).includes(word)) return word;
  if (word === "icmpv6") return "ipv6-icmp";
  const number = unsigned32(word);
  if (number === undefined || number > 255) throw usage(`unknown protocol "${word}" specified`);
  return PROTOCOLS[String(number)] ?? String(number);
}
