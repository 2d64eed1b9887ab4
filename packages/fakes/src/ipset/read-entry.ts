import { parseCIDR, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { SetType } from "@turnout/host/ipset/text";
import { BITS } from "@turnout/host/iptables";
import { PARTS } from "./fake-set.ts";
import type { FakeSet } from "./fake-set.ts";
import { IpsetRefusal, kernel, syntax, WORDS } from "./refusal.ts";

const PORT_MAX = 65_535;
const PROTOCOLS: Readonly<Record<string, string>> = { 6: "tcp", 17: "udp", 132: "sctp", 136: "udplite" };
/** What the kernel says of a first address that is 0. */
const ZERO: Readonly<Partial<Record<SetType, string>>> = {
  "hash:ip": WORDS.zero,
  "hash:ip,port": WORDS.invalid,
};

/** What the tool understood; the kernel may still have something against it. @throws {IpsetRefusal} `kernel`. */
export type Read = () => string;

/**
 * Understand an entry for a set, so that it can be spelled as the set would print it.
 *
 * Edges: ranges, host names and names of ports are refused here though the real tool takes them.
 * @throws {IpsetRefusal}.
 */
export function readEntry(text: string, { type, family }: Pick<FakeSet, "type" | "family">): Read {
  const parts = PARTS[type];
  const words = text.split(",");
  if (words.length !== parts.length) throw syntax(`${parts.length} elements are expected, not ${text}`);
  const read = parts.map((part, index) => {
    const word = words[index] ?? "";
    if (part === "ip") return readAddress(word, family, index === 0 ? ZERO[type] : undefined);
    if (part === "net") return readNet(word, family);
    return type === "bitmap:port" ? readPort(word.replace(/^(?:tcp|udp):/, "")) : readProtocolPort(word);
  });
  return () => read.map((item) => item()).join(",");
}

function readAddress(word: string, family: IPFamily, ofZero: string | undefined): Read {
  const ip = parseIP(word);
  if (ip?.family !== family) throw syntax(`cannot parse ${word} as an address of ${family}`);
  return () => {
    if (ip.value === 0n && ofZero !== undefined) throw kernel(ofZero);
    return ip.text;
  };
}

function readNet(word: string, family: IPFamily): Read {
  const cidr = parseCIDR(word.includes("/") ? word : `${word}/${BITS[family]}`);
  if (cidr?.family !== family) throw syntax(`cannot parse ${word} as a network of ${family}`);
  return () => {
    if (cidr.prefixLength === 0) throw kernel(WORDS.prefix);
    return cidr.prefixLength === BITS[family] ? (cidr.text.split("/")[0] ?? "") : cidr.text;
  };
}

function readProtocolPort(word: string): Read {
  const colon = word.indexOf(":");
  const name = colon < 0 ? "tcp" : word.slice(0, colon);
  const protocol = PROTOCOLS[name] ?? (Object.values(PROTOCOLS).includes(name) ? name : undefined);
  if (protocol === undefined) throw syntax(`cannot parse '${name}' as a protocol`);
  const port = readPort(word.slice(colon + 1));
  return () => `${protocol}:${port()}`;
}

function readPort(word: string): Read {
  if (/^\d+$/.test(word) && Number(word) <= PORT_MAX) return () => String(Number(word));
  throw new IpsetRefusal("usage", `Syntax error: cannot parse '${word}' as a port`);
}
