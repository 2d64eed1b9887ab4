import { compileSelector, settleProtocol } from "./compile-expression.ts";
import type { RuleContext } from "./compile-expression.ts";
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
  if (right.is === "named" || right.is === "elements") return compileMembership(statement, selector, context);
  const constant = readConstant(right, selector.types);
  noteProtocol(left, comparison, constant, context, right);
  const operator = comparison === "" ? (type.isMask ? "in" : "==") : comparison;
  const test = testFor(operator, type, constant, right);
  return {
    json: { match: { op: operator, left: selector.json, right: constant.json } },
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
  if (set.data !== undefined) throw new Refusal("Expression is a map, not a set", right);
  if (!isSameType(set.types, selector.types)) {
    const what = `datatype mismatch, expected ${describeTypes(selector.types)}, expression has type ${describeTypes(set.types)}`;
    throw new Refusal(what, left);
  }
  const isIn = comparison !== "!=";
  return {
    json: { match: { op: isIn ? "==" : "!=", left: selector.json, right: json } },
    run(walk: Walk): "break" | undefined {
      const value = selector.read(walk);
      if (value === undefined) return "break";
      return (findElement(set, value, walk.nowMs) !== undefined) === isIn ? undefined : "break";
    },
  };
}

/** `meta l4proto tcp` and its like say what `th dport` later in the rule is about. */
function noteProtocol(
  left: Expression,
  comparison: Comparison,
  { value, interval }: Constant,
  context: RuleContext,
  right: Expression,
): void {
  const isProtocol =
    (left.is === "meta" && left.key === "l4proto") || (left.is === "payload" && (left.field === "protocol" || left.field === "nexthdr"));
  if (!isProtocol || interval !== undefined || (comparison !== "" && comparison !== "==")) return;
  const name = TRANSPORTS[value];
  if (name !== undefined) settleProtocol(context, name, right);
}

const TRANSPORTS: Readonly<Record<string, string>> = { "6": "tcp", "17": "udp", "132": "sctp" };

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
