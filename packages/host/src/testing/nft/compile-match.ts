import { compileSelector } from "./compile-expression.ts";
import type { Listing, RuleContext } from "./rule-context.ts";
import { readConstant } from "./constants.ts";
import type { Constant } from "./constants.ts";
import { describeTypes, isSameType } from "./data-types.ts";
import type { DataType } from "./data-types.ts";
import { Refusal } from "./refusal.ts";
import { findElement, numberOf } from "./ruleset.ts";
import type { Statement } from "./ruleset.ts";
import { resolveSet } from "./set-references.ts";
import type { Comparison, Expression, StatementSyntax } from "./syntax.ts";
import type { Walk } from "./walk.ts";

type MatchSyntax = Extract<StatementSyntax, { is: "match" }>;

/** Understand a comparison of something of the packet with a constant or a set. @throws {Refusal}. */
export function compileMatch(statement: MatchSyntax, context: RuleContext): Statement {
  const { left, comparison, right } = statement;
  const selector = compileSelector(left, context);
  const [type] = selector.types;
  if (type === undefined) throw new Refusal("datatype mismatch", left);
  const single = singleElement(right);
  if (single !== undefined) return compileMatch({ ...statement, right: single }, context);
  if (right.is === "named" || right.is === "elements") return compileMembership(statement, selector, context);
  const constant = readConstant(right, selector.types);
  const isEqual = comparison === "" || comparison === "==";
  const listing = isEqual ? noteProtocols(left, [constant.value], context) : undefined;
  const field = isEqual && constant.interval === undefined ? fieldOf(left) : undefined;
  const operator = comparison === "" ? (type.isMask ? "in" : "==") : comparison;
  const test = testFor(operator, type, constant, right);
  return {
    json: { match: { op: operator, left: selector.json, right: operator === "in" ? constant.json : joined(constant.json) } },
    ...(listing === undefined ? {} : { listing }),
    ...(field === undefined ? {} : { field }),
    run(walk: Walk): "break" | undefined {
      const value = selector.read(walk);
      return value !== undefined && test(value) ? undefined : "break";
    },
  };
}

function compileMembership(
  { left, comparison, right }: MatchSyntax,
  selector: ReturnType<typeof compileSelector>,
  context: RuleContext,
): Statement {
  if (right.is !== "named" && right.is !== "elements") throw new Refusal("not a set", right);
  if (comparison !== "" && comparison !== "==" && comparison !== "!=") throw new Refusal("Binary operation is undefined for set", right);
  const { set, json } = resolveSet(right, selector.types, context);
  if (!isSameType(set.types, selector.types)) {
    const what = `datatype mismatch, expected ${describeTypes(selector.types)}, expression has type ${describeTypes(set.types)}`;
    throw new Refusal(what, left);
  }
  const isIn = comparison !== "!=";
  if (isIn && right.is === "elements") noteProtocols(left, [...set.elements.keys()], context);
  return {
    json: { match: { op: isIn ? "==" : "!=", left: selector.json, right: json } },
    run(walk: Walk): "break" | undefined {
      const value = selector.read(walk);
      if (value === undefined) return "break";
      return (findElement(set, value, walk.nowMs) !== undefined) === isIn ? undefined : "break";
    },
  };
}

/** nft takes a set written out with one element for that element; a concatenation stays a set. */
function singleElement(right: Expression): Expression | undefined {
  const [only, ...more] = right.is === "elements" ? right.elements : [];
  return only === undefined || more.length > 0 || only.key.is === "concat" || only.data !== undefined ? undefined : only.key;
}

/** Several bits where all are meant. */
function joined(json: unknown): unknown {
  return Array.isArray(json) ? { "|": json as readonly unknown[] } : json;
}

/** `meta l4proto tcp` and its like say what `th dport` later in the rule is about; gives the note whether one has to be listed. */
function noteProtocols(left: Expression, values: readonly string[], context: RuleContext): Listing | undefined {
  const isProtocol =
    (left.is === "meta" && left.key === "l4proto") || (left.is === "payload" && (left.field === "protocol" || left.field === "nexthdr"));
  if (!isProtocol) return undefined;
  if (context.reset !== undefined) context.reset.isHidden = true;
  context.protocols = values.map((value) => TRANSPORTS[value] ?? `protocol ${value}`);
  context.dependency = values.length === 1 && TRANSPORTS[values[0] ?? ""] !== undefined ? { isHidden: false } : undefined;
  return context.dependency;
}

const TRANSPORTS: Readonly<Record<string, string>> = { "6": "tcp", "17": "udp", "132": "sctp" };

/** Offsets and lengths in bytes of what may be compared. */
const FIELDS: Readonly<Record<string, readonly [number, number]>> = {
  "ip ttl": [8, 1],
  "ip protocol": [9, 1],
  "ip saddr": [12, 4],
  "ip daddr": [16, 4],
  "ip6 nexthdr": [6, 1],
  "ip6 hoplimit": [7, 1],
  "ip6 saddr": [8, 16],
  "ip6 daddr": [24, 16],
  "transport sport": [0, 2],
  "transport dport": [2, 2],
};

function fieldOf(left: Expression): Statement["field"] {
  if (left.is !== "payload") return undefined;
  const header = left.protocol.startsWith("ip") ? left.protocol : "transport";
  const [offset, length] = FIELDS[`${header} ${left.field}`] ?? [];
  return offset === undefined || length === undefined ? undefined : { header, protocol: left.protocol, offset, length };
}

function testFor(
  operator: Exclude<Comparison, ""> | "in",
  type: DataType,
  constant: Constant,
  right: Expression,
): (value: string) => boolean {
  const { value: wanted, interval } = constant;
  if (interval !== undefined) {
    if (operator !== "==" && operator !== "!=") throw new Refusal("Binary operation is undefined for range", right);
    const isInside = (value: string): boolean => {
      const number = numberOf(type, value);
      return interval.from <= number && number <= interval.to;
    };
    return operator === "==" ? isInside : (value) => !isInside(value);
  }
  switch (operator) {
    case "in":
      return (value) => (Number(value) & Number(wanted)) !== 0;
    case "==":
      return type.name === "ifname" && wanted.endsWith("*")
        ? (value) => value.startsWith(wanted.slice(0, -1))
        : (value) => value === wanted;
    case "!=":
      return type.name === "ifname" && wanted.endsWith("*")
        ? (value) => !value.startsWith(wanted.slice(0, -1))
        : (value) => value !== wanted;
    case "<":
      return (value) => numberOf(type, value) < numberOf(type, wanted);
    case ">":
      return (value) => numberOf(type, value) > numberOf(type, wanted);
    case "<=":
      return (value) => numberOf(type, value) <= numberOf(type, wanted);
    case ">=":
      return (value) => numberOf(type, value) >= numberOf(type, wanted);
  }
}
