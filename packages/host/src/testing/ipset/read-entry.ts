import { parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { SetType } from "../../ipset/text/set-spec.ts";
import { PARTS } from "./fake-set.ts";
import type { FakeSet } from "./fake-set.ts";
import { IpsetRefusal, kernel, syntax, WORDS } from "./refusal.ts";

const BITS: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };
const PORT_MAX = 65_535;
const PROTOCOLS: Readonly<Record<string, string>> = { 6: "tcp", 17: "udp", 132: "sctp", 136: "udplite" };
/** What the kernel says of a first address that is 0. */
const ZERO: Readonly<Partial<Record<SetType, string>>> = {
  "hash:ip": WORDS.zero,
  "hash:ip,port": WORDS.invalid,
};
const COUNTS = ["Zero", "One", "Two", "Three"];
const ORDINALS = ["First", "Second", "Third"];

/**
 * Understand an entry for a set, so that it can be spelled as the set would print it.
 *
 * Edges: ranges, host names and names of ports are refused here though the real tool takes them.
 * @throws {IpsetRefusal}.
 */
export function readEntry(text: string, { type, family }: Pick<FakeSet, "type" | "family">): Read {
  const parts = PARTS[type];
  const words = text.split(",");
  if (words.length > parts.length) throw syntax(tooMany(text, type, parts.length));
  if (words.length < parts.length) throw syntax(`${ORDINALS[words.length]} element is missing from ${text}.`);
  const read = parts.map((part, index) => {
    const word = words[index] ?? "";
    switch (part) {
      case "ip":
        return readAddress(word, family, index === 0 ? ZERO[type] : undefined);
      case "net":
        return readNet(word, family);
      case "port":
        return type === "bitmap:port" ? readPort(withoutProtocol(word), "tcp") : readProtocolPort(word);
    }
  });
  return () => read.map((item) => item()).join(",");
}

function tooMany(text: string, type: string, parts: number): string {
  const separators = parts === 1 ? "Elem separator" : parts === 2 ? "Two elem separators" : "Three elem separators";
  const supported = parts === 1 ? "supports none" : `supports ${COUNTS[parts - 1]?.toLowerCase()}`;
  return `${separators} in ${text}, but settype ${type} ${supported}.`;
}

/** What the tool understood; the kernel may still have something against it. @throws {IpsetRefusal} `kernel`. */
export type Read = () => string;

function readAddress(word: string, family: IPFamily, ofZero: string | undefined): Read {
  if (word.includes("/")) throw syntax(`plain IP address must be supplied: ${word}`);
  const ip = resolve(word, family);
  return () => {
    if (ip.value === 0n && ofZero !== undefined) throw kernel(ofZero);
    return ip.text;
  };
}

function resolve(word: string, family: IPFamily): { readonly text: string; readonly value: bigint } {
  const ip = parseIP(word);
  if (ip?.family !== family) throw syntax(`cannot parse ${word}: resolving to ${family} address failed`);
  return ip;
}

function readNet(word: string, family: IPFamily): Read {
  const [address = "", lengthText] = word.split("/", 2);
  const bits = BITS[family];
  const length = lengthText === undefined ? bits : Number(lengthText);
  if (!(length <= bits)) throw syntax(`'${lengthText}' is out of range 0-${bits}`);
  const { value } = resolve(address, family);
  return () => {
    if (length === 0) throw kernel(WORDS.prefix);
    const shift = BigInt(bits - length);
    const text = ipText((value >> shift) << shift, family);
    return length === bits ? text : `${text}/${length}`;
  };
}

function ipText(value: bigint, family: IPFamily): string {
  const groups = (size: number, count: number, radix: number): string[] =>
    Array.from({ length: count }, (_, index) =>
      ((value >> BigInt(size * (count - 1 - index))) & ((1n << BigInt(size)) - 1n)).toString(radix),
    );
  const text = family === "IPv4" ? groups(8, 4, 10).join(".") : groups(16, 8, 16).join(":");
  return parseIP(text)?.text ?? text;
}

function readProtocolPort(word: string): Read {
  const colon = word.indexOf(":");
  const name = colon < 0 ? "tcp" : word.slice(0, colon);
  const protocol = PROTOCOLS[name] ?? (Object.values(PROTOCOLS).includes(name) ? name : undefined);
  if (protocol === undefined) throw syntax(`cannot parse '${name}' as a protocol`);
  const port = readPort(word.slice(colon + 1), protocol);
  return () => `${protocol}:${port()}`;
}

function withoutProtocol(word: string): string {
  return word.startsWith("tcp:") || word.startsWith("udp:") ? word.slice(4) : word;
}

/** Three complaints, since the tool tries a number, then a name. */
function readPort(word: string, protocol: string): Read {
  const isNumber = /^\d+$/.test(word);
  if (isNumber && Number(word) <= PORT_MAX) return () => String(Number(word));
  const first = isNumber ? `'${word}' is out of range 0-65535` : `'${word}' is invalid as number`;
  const rest = `Syntax error: '${protocol}' is invalid as number\ncannot parse '${word}' as a ${protocol} port`;
  throw new IpsetRefusal("usage", `Syntax error: ${first}\n${rest}`);
}
