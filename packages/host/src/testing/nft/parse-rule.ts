import { parseComment, parseConcat, parseElements, parseSetReference, parseValue, parseVerdict } from "./parse-expression.ts";
import { Refusal } from "./refusal.ts";
import type { Comparison, Expression, NatSyntax, RuleSyntax, StatementSyntax } from "./syntax.ts";
import type { TokenReader } from "./token-reader.ts";

const COMPARISONS = ["==", "!=", "<=", ">=", "<", ">"] as const;
const NAT_FLAGS = ["random", "fully-random", "persistent"] as const;
const ICMP_CODES = {
  icmp: [
    "port-unreachable",
    "net-unreachable",
    "host-unreachable",
    "prot-unreachable",
    "net-prohibited",
    "host-prohibited",
    "admin-prohibited",
  ],
  icmpv6: ["port-unreachable", "no-route", "admin-prohibited", "addr-unreachable", "policy-fail", "reject-route"],
} as const;

/** The statements of a rule, up to the end of its command. */
export function parseRule(reader: TokenReader): RuleSyntax {
  const start = reader.start;
  const statements: StatementSyntax[] = [parseStatement(reader)];
  const isOver = (): boolean =>
    reader.isAt(";") || reader.isAt("comment") || reader.peek().kind === "newline" || reader.peek().kind === "end";
  while (!isOver()) statements.push(parseStatement(reader));
  const { end } = reader.since(start);
  const text = reader.text.slice(start, end);
  const comment = reader.accept("comment") ? parseComment(reader) : undefined;
  return { statements, text, ...reader.since(start), ...(comment === undefined ? {} : { comment }) };
}

function parseStatement(reader: TokenReader): StatementSyntax {
  const start = reader.start;
  const verdict = parseVerdict(reader);
  if (verdict !== undefined) return verdict;
  const { text } = reader.peek();
  switch (text) {
    case "counter": {
      reader.next();
      if (!reader.accept("packets")) return { is: "counter", packets: 0, bytes: 0, ...reader.since(start) };
      const packets = reader.expectNumber();
      reader.expect("bytes");
      return { is: "counter", packets, bytes: reader.expectNumber(), ...reader.since(start) };
    }
    case "log": {
      reader.next();
      const prefix = reader.accept("prefix") ? reader.expectQuoted().text : "";
      return { is: "log", prefix, ...reader.since(start) };
    }
    case "reject":
      return parseReject(reader);
    case "dnat":
    case "snat":
    case "masquerade":
    case "redirect":
      return parseNat(reader, text);
    case "add":
    case "update":
      return parseDynset(reader, text);
    default:
      return parseMatch(reader);
  }
}

function parseMatch(reader: TokenReader): StatementSyntax {
  const start = reader.start;
  const left = parseConcat(reader);
  if ((left.is === "meta" || left.is === "ct") && left.key === "mark" && reader.accept("set")) {
    return { is: "mangle", target: left.is, value: parseValue(reader), ...reader.since(start) };
  }
  if (reader.accept("vmap")) {
    const data = parseSetReference(reader);
    return { is: "vmap", key: left, data, ...reader.since(start) };
  }
  const comparison: Comparison = COMPARISONS.find((one) => reader.isAt(one)) ?? "";
  if (comparison !== "") reader.next();
  const right = reader.isAt("@") || reader.isAt("{") ? parseSetReference(reader) : parseList(reader);
  return { is: "match", left, comparison, right, ...reader.since(start) };
}

/** A constant, or several separated by commas. */
function parseList(reader: TokenReader): Expression {
  const start = reader.start;
  const items = [parseConcat(reader)];
  while (reader.accept(",")) items.push(parseConcat(reader));
  const [only] = items;
  return items.length === 1 && only !== undefined ? only : { is: "list", items, ...reader.since(start) };
}

function parseReject(reader: TokenReader): StatementSyntax {
  const start = reader.start;
  reader.expect("reject");
  if (!reader.accept("with")) return { is: "reject", type: "", code: "port-unreachable", ...reader.since(start) };
  const type = reader.expectOneOf(["icmp", "icmpv6", "tcp"]);
  if (type === "tcp") {
    reader.expect("reset");
    return { is: "reject", type: "tcp reset", code: "", ...reader.since(start) };
  }
  reader.accept("type");
  const token = reader.next();
  const code = ICMP_CODES[type].find((one) => one === token.text);
  if (code === undefined) throw new Refusal("Could not parse ICMP code", token);
  return { is: "reject", type, code, ...reader.since(start) };
}

function parseNat(reader: TokenReader, type: NatSyntax["type"]): NatSyntax {
  const start = reader.start;
  reader.next();
  let family: NatSyntax["family"] = "";
  let address: Expression | undefined;
  let port: Expression | undefined;
  const isTranslating = type === "dnat" || type === "snat";
  if (isTranslating && (reader.isAt("ip") || reader.isAt("ip6")) && reader.peek(1).text === "to")
    family = reader.expectOneOf(["ip", "ip6"]);
  if (isTranslating ? (reader.expect("to"), true) : reader.accept("to")) {
    if (isTranslating) address = parseValue(reader);
    if (reader.accept(":")) port = parseConcat(reader);
    else if (!isTranslating) throw reader.unexpected();
  }
  const flags: string[] = [];
  if (NAT_FLAGS.some((flag) => reader.isAt(flag))) {
    do flags.push(reader.expectOneOf(NAT_FLAGS));
    while (reader.accept(","));
  }
  return {
    is: "nat",
    type,
    family,
    flags,
    ...reader.since(start),
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
  };
}

function parseDynset(reader: TokenReader, operation: "add" | "update"): StatementSyntax {
  const start = reader.start;
  reader.next();
  reader.expect("@");
  const name = reader.expectName();
  const at = reader.peek();
  const elements = parseElements(reader);
  const [element] = elements;
  if (element === undefined || elements.length > 1) throw new Refusal("syntax error, unexpected comma", at);
  return { is: "dynset", operation, set: { name: name.text, start: name.start, end: name.end }, element, ...reader.since(start) };
}
