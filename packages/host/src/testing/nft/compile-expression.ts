import { addressTypeOf, DATA_TYPES, describeTypes, integerType, isSameType } from "./data-types.ts";
import type { DataType } from "./data-types.ts";
import { readConstant } from "./constants.ts";
import { kernelRefusal, Refusal } from "./refusal.ts";
import type { Span } from "./refusal.ts";
import { findElement } from "./ruleset.ts";
import { resolveSet } from "./set-references.ts";
import type { RuleContext } from "./rule-context.ts";
import type { BitOperator, Expression } from "./syntax.ts";
import type { Walk } from "./walk.ts";

/** An expression that was understood. `read` gives undefined when the packet has no such thing: the rule doesn't match. */
export interface Selector {
  readonly types: readonly DataType[];
  readonly json: unknown;
  read(walk: Walk): string | undefined;
}

/** Note that a rule is about a transport protocol, because it asks for a field of it. @throws {Refusal} when it is about another already. */
export function requireProtocol(context: RuleContext, protocol: string, span: Span): void {
  const other = context.protocols.find((one) => one !== protocol);
  if (other !== undefined) throw new Refusal(`conflicting protocols specified: ${other} vs. ${protocol}`, span);
  context.protocols = [protocol];
}

/** Understand something that a packet is asked for. @throws {Refusal} for a constant, and for what makes no sense in this family. */
export function compileSelector(expression: Expression, context: RuleContext): Selector {
  switch (expression.is) {
    case "payload":
      return payloadSelector(expression, context);
    case "meta":
      return metaSelector(expression);
    case "ct":
      return ctSelector(expression.key);
    case "fib":
      return fibSelector(expression.flags, expression.result, expression, context);
    case "numgen":
      return numgenSelector(expression);
    case "concat": {
      const parts = expression.parts.map((part) => compileSelector(part, context));
      return {
        types: parts.flatMap(({ types }) => types),
        json: { concat: parts.map(({ json }) => json) },
        read: (walk) => readAll(parts, walk),
      };
    }
    case "bits":
      return bitsSelector(expression.left, expression.operator, expression.right, context);
    case "map":
      return mapSelector(expression, context);
    case "constant":
      // What a constant means depends on what it is compared with, and here is nothing.
      throw new Refusal("No symbol type information", expression);
    default:
      throw new Refusal("syntax error, unexpected expression", expression);
  }
}

function readAll(parts: readonly Selector[], walk: Walk): string | undefined {
  const values: string[] = [];
  for (const part of parts) {
    const value = part.read(walk);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values.join(" . ");
}

function payloadSelector(expression: Extract<Expression, { is: "payload" }>, context: RuleContext): Selector {
  const { protocol, field } = expression;
  const { family } = context.table;
  const json = { payload: { protocol, field } };
  if (protocol === "ip" || protocol === "ip6") {
    if (protocol !== family) throw new Refusal(`conflicting protocols specified: ${family} vs. ${protocol}`, expression);
    const types = [
      field === "saddr" || field === "daddr"
        ? addressTypeOf(family)
        : field === "ttl" || field === "hoplimit"
          ? integerType(8)
          : DATA_TYPES.inet_proto,
    ];
    if (field === "saddr") return { types, json, read: (walk) => walk.source };
    if (field === "daddr") return { types, json, read: (walk) => walk.destination };
    return { types, json, read: (walk) => (types[0] === DATA_TYPES.inet_proto ? walk.protocolNumber : "64") };
  }
  if (protocol !== "th") requireProtocol(context, protocol, expression);
  if (context.dependency !== undefined) context.dependency.isHidden = true;
  context.dependency = undefined;
  const [first] = context.reset !== undefined ? ["tcp"] : context.protocols;
  const resolved = first === undefined || context.protocols.length > 1 ? "th" : first;
  return {
    types: [DATA_TYPES.inet_service],
    json: { payload: { protocol: resolved, field } },
    read: (walk) => (resolved !== "th" && resolved !== walk.protocol ? undefined : String(field === "dport" ? walk.port : walk.sourcePort)),
  };
}

function metaSelector(expression: Extract<Expression, { is: "meta" | "ct" }>): Selector {
  const json = { meta: { key: expression.key } };
  switch (expression.key) {
    case "mark":
      return { types: [DATA_TYPES.mark], json, read: (walk) => String(walk.mark) };
    case "l4proto":
      return { types: [DATA_TYPES.inet_proto], json, read: (walk) => walk.protocolNumber };
    case "iifname":
      return { types: [DATA_TYPES.ifname], json, read: (walk) => walk.inputLink };
    case "oifname":
      return { types: [DATA_TYPES.ifname], json, read: (walk) => walk.outputLink };
    default:
      throw new Refusal("meta nfproto is only useful in the inet family", expression);
  }
}

function ctSelector(key: string): Selector {
  const json = { ct: { key } };
  if (key === "state") return { types: [DATA_TYPES.ct_state], json, read: (walk) => String(walk.ctState) };
  if (key === "status") return { types: [DATA_TYPES.ct_status], json, read: (walk) => String(walk.ctStatus) };
  return { types: [DATA_TYPES.mark], json, read: (walk) => String(walk.ctMark) };
}

function fibSelector(flags: readonly string[], result: string, span: Span, { table }: RuleContext): Selector {
  if (flags.length > 1) throw kernelRefusal("EINVAL", span);
  const isSource = flags[0] === "saddr";
  return {
    types: [DATA_TYPES.fib_addrtype],
    json: { fib: { result, flags } },
    read: (walk) => (table.family !== walk.family ? undefined : addressKind(isSource ? walk.source : walk.destination, walk)),
  };
}

/** local 2, unicast 1, broadcast 3, multicast 5: the kernel's RTN_ numbers. */
function addressKind(address: string, { isLocal }: Walk): string {
  if (isLocal(address)) return "2";
  if (address === "255.255.255.255") return "3";
  return /^(?:22[4-9]|23\d)\.|^ff/.test(address) ? "5" : "1";
}

function numgenSelector({ mode, mod, offset, ...span }: Extract<Expression, { is: "numgen" }>): Selector {
  if (mod === 0) throw kernelRefusal("ERANGE", span);
  if (mod + offset > 0xffff_ffff) throw kernelRefusal("EOVERFLOW", span);
  let counter = 0;
  return {
    types: [integerType(32)],
    // nft 1.0.6 prints what needs the 32nd bit as negative.
    json: { numgen: { mode, mod: mod | 0, offset: offset | 0 } },
    read: (walk) => String(offset + (mode === "random" ? Math.floor(walk.random() * mod) : counter++ % mod)),
  };
}

/** Compute with bits: a selector of one part and a constant. */
function bitsSelector(left: Expression, operator: BitOperator, right: Expression, context: RuleContext): Selector {
  const { types, json, read } = compileSelector(left, context);
  const [type] = types;
  if (type === undefined || types.length > 1 || type === DATA_TYPES.ifname)
    throw new Refusal("Binary operation is undefined for this type", left);
  const constant = readConstant(right, [type]).value;
  const number = BigInt(constant);
  const compute = (value: bigint): bigint => (operator === "&" ? value & number : operator === "|" ? value | number : value ^ number);
  return {
    types,
    json: { [operator]: [json, type.json(constant)] },
    read(walk: Walk): string | undefined {
      const value = read(walk);
      return value === undefined ? undefined : String(compute(BigInt(value)));
    },
  };
}

/** Look a key up; nothing found means that the rule doesn't match. */
function mapSelector(expression: Extract<Expression, { is: "map" }>, context: RuleContext): Selector {
  const key = compileSelector(expression.key, context);
  const { set, json } = resolveSet(expression.data, key.types, context);
  if (set.data === undefined || set.data === "verdict") throw new Refusal("Expression is not a map with data", expression.data);
  if (!isSameType(set.types, key.types)) {
    const what = `datatype mismatch, map expects ${describeTypes(set.types)}, mapping expression has type ${describeTypes(key.types)}`;
    throw new Refusal(what, expression.key);
  }
  return {
    types: set.data,
    json: { map: { key: key.json, data: json } },
    read(walk: Walk): string | undefined {
      const value = key.read(walk);
      const data = value === undefined ? undefined : findElement(set, value, walk.nowMs)?.data;
      return typeof data === "string" ? data : undefined;
    },
  };
}
