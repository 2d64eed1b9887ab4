import type { ElementSyntax, Expression, SetReference, VerdictSyntax } from "./syntax.ts";
import { Refusal } from "./refusal.ts";
import type { TokenReader } from "./token-reader.ts";
import { RESERVED_WORDS } from "./reserved-words.ts";

const PAYLOAD_FIELDS: Readonly<Record<string, readonly string[]>> = {
  ip: ["saddr", "daddr", "protocol", "ttl"],
  ip6: ["saddr", "daddr", "nexthdr", "hoplimit"],
  tcp: ["sport", "dport"],
  udp: ["sport", "dport"],
  sctp: ["sport", "dport"],
  th: ["sport", "dport"],
};
const META_KEYS = ["mark", "l4proto", "nfproto", "iifname", "oifname"] as const;
/** Of the meta keys those that need no `meta` before them. */
const UNQUALIFIED_META = ["mark", "iifname", "oifname"] as const;
const CT_KEYS = ["state", "status", "mark"] as const;
/** Words of the grammar that are constants, too. */
const CONSTANT_WORDS: ReadonlySet<string> = new Set(
  "tcp udp sctp udplite dccp esp ah comp icmp icmpv6 igmp dnat snat ip ip6 exists missing".split(" "),
);
const BIT_OPERATORS = { and: "&", "&": "&", or: "|", "|": "|", xor: "^", "^": "^" } as const;
const VERDICTS = ["accept", "drop", "continue", "return", "jump", "goto"] as const;
/** Bytes of a comment of a rule, an element or anything else. */
const COMMENT_BYTES_MAX = 128;
const TIME_UNITS_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** Parts joined by dots; each may be a range, a prefix or bits that are computed. */
export function parseConcat(reader: TokenReader): Expression {
  const start = reader.start;
  const parts = [parseItem(reader)];
  while (reader.accept(".")) parts.push(parseItem(reader));
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : { is: "concat", parts, ...reader.since(start) };
}

/** A concatenation, or what a map has for it. */
export function parseValue(reader: TokenReader): Expression {
  const start = reader.start;
  const key = parseConcat(reader);
  if (!reader.accept("map")) return key;
  const data = parseSetReference(reader);
  return { is: "map", key, data, ...reader.since(start) };
}

/** `@name` or `{ … }`. */
export function parseSetReference(reader: TokenReader): SetReference {
  const start = reader.start;
  if (reader.accept("@")) {
    const { text: name } = reader.expectName();
    return { is: "named", name, ...reader.since(start) };
  }
  const elements = parseElements(reader);
  return { is: "elements", elements, ...reader.since(start) };
}

/** Elements in braces. */
export function parseElements(reader: TokenReader): readonly ElementSyntax[] {
  reader.expect("{");
  const elements: ElementSyntax[] = [];
  do {
    reader.skipNewlines();
    // nft takes a comma behind the last one, and several of them.
    if (elements.length > 0 && reader.isAt(",")) continue;
    if (elements.length > 0 && reader.isAt("}")) break;
    elements.push(parseElement(reader));
    reader.skipNewlines();
  } while (reader.accept(","));
  reader.expect("}");
  return elements;
}

function parseElement(reader: TokenReader): ElementSyntax {
  const start = reader.start;
  const key = parseConcat(reader);
  let comment: ElementSyntax["comment"];
  let timeoutMs: number | undefined;
  for (;;) {
    if (reader.accept("comment")) comment = parseComment(reader);
    else if (reader.accept("timeout")) timeoutMs = parseTimeMs(reader);
    // Taken, and nothing is counted: the fake has no traffic to count.
    else if (!reader.accept("counter")) break;
  }
  const span = reader.since(start);
  const data = reader.accept(":") ? (parseVerdict(reader) ?? parseConcat(reader)) : undefined;
  return {
    key,
    ...span,
    ...(comment === undefined ? {} : { comment }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(data === undefined ? {} : { data }),
  };
}

/** The text behind `comment`. */
export function parseComment(reader: TokenReader): NonNullable<ElementSyntax["comment"]> {
  const token = reader.peek();
  const isText = token.kind === "quoted" || token.kind === "address" || (token.kind === "word" && !RESERVED_WORDS.has(token.text));
  if (!isText) throw reader.unexpected("expecting string or quoted string or string with a trailing asterisk");
  const { text, start, end } = reader.next();
  if (Buffer.byteLength(text) > COMMENT_BYTES_MAX) throw new Refusal("comment too long, 128 characters maximum allowed", token);
  return { text, start, end };
}

/** A time such as `3h30m`; without unit seconds. */
export function parseTimeMs(reader: TokenReader): number {
  const token = reader.peek();
  if (token.kind === "number") return reader.expectNumber() * 1_000;
  if (token.kind !== "word" || !/^\d/.test(token.text)) throw reader.unexpected();
  reader.next();
  let ms = 0;
  for (const [, count = "", unit = ""] of token.text.matchAll(/(\d+)(ms|[dhms])/g)) ms += Number(count) * (TIME_UNITS_MS[unit] ?? 0);
  return ms;
}

/** A verdict, if one comes next. */
export function parseVerdict(reader: TokenReader): VerdictSyntax | undefined {
  const start = reader.start;
  const verdict = VERDICTS.find((word) => reader.isAt(word));
  if (verdict === undefined) return undefined;
  reader.next();
  if (verdict !== "jump" && verdict !== "goto") return { is: "verdict", verdict, ...reader.since(start) };
  const name = reader.expectName();
  return { is: "verdict", verdict, chain: { name: name.text, start: name.start, end: name.end }, ...reader.since(start) };
}

function parseItem(reader: TokenReader): Expression {
  const start = reader.start;
  const left = parseBits(reader);
  if (reader.accept("/")) {
    const length = reader.expectNumber();
    return { is: "prefix", address: left, length, ...reader.since(start) };
  }
  if (reader.accept("-")) {
    const to = parsePrimary(reader);
    return { is: "range", from: left, to, ...reader.since(start) };
  }
  return left;
}

function parseBits(reader: TokenReader): Expression {
  const start = reader.start;
  let left = parsePrimary(reader);
  for (;;) {
    const word = (Object.keys(BIT_OPERATORS) as (keyof typeof BIT_OPERATORS)[]).find((one) => reader.isAt(one));
    if (word === undefined) return left;
    reader.next();
    left = { is: "bits", operator: BIT_OPERATORS[word], left, right: parsePrimary(reader), ...reader.since(start) };
  }
}

function parsePrimary(reader: TokenReader): Expression {
  const start = reader.start;
  const { kind, text } = reader.peek();
  if (kind === "word") {
    const selector = parseSelector(reader);
    if (selector !== undefined) return selector;
    if (RESERVED_WORDS.has(text) && !CONSTANT_WORDS.has(text)) throw reader.unexpected();
  } else if (kind === "symbol" || kind === "newline" || kind === "end") {
    if (!reader.accept("(")) throw reader.unexpected();
    const inner = parseBits(reader);
    reader.expect(")");
    return inner;
  }
  reader.next();
  return { is: "constant", text, isQuoted: kind === "quoted", ...reader.since(start) };
}

/** Something of the packet, or a number made up for it. */
function parseSelector(reader: TokenReader): Expression | undefined {
  const start = reader.start;
  const { text } = reader.peek();
  const fields = PAYLOAD_FIELDS[text];
  if (fields !== undefined) {
    const field = fields.find((name) => reader.peek(1).text === name);
    if (field === undefined) return undefined;
    reader.next();
    reader.next();
    return { is: "payload", protocol: text, field, ...reader.since(start) };
  }
  if (UNQUALIFIED_META.some((key) => key === text)) {
    reader.next();
    return { is: "meta", key: text, ...reader.since(start) };
  }
  switch (text) {
    case "meta":
      reader.next();
      return { is: "meta", key: reader.expectOneOf(META_KEYS), ...reader.since(start) };
    case "ct":
      reader.next();
      return { is: "ct", key: reader.expectOneOf(CT_KEYS), ...reader.since(start) };
    case "fib": {
      reader.next();
      const flags: string[] = [reader.expectOneOf(["saddr", "daddr"])];
      while (reader.accept(".")) flags.push(reader.expectOneOf(["iif", "oif", "mark"]));
      return { is: "fib", flags, result: reader.expectOneOf(["type"]), ...reader.since(start) };
    }
    case "numgen":
      return parseNumgen(reader);
    default:
      return undefined;
  }
}

function parseNumgen(reader: TokenReader): Expression {
  const start = reader.start;
  reader.expect("numgen");
  const mode = reader.expectOneOf(["random", "inc"]);
  reader.expect("mod");
  // nft keeps the lower 32 bits.
  const mod = reader.expectNumber() % 2 ** 32;
  const offset = reader.accept("offset") ? reader.expectNumber() % 2 ** 32 : 0;
  return { is: "numgen", mode, mod, offset, ...reader.since(start) };
}
