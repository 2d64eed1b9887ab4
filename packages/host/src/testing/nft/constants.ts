import { describeTypes, jsonOfKey } from "./data-types.ts";
import type { DataType } from "./data-types.ts";
import { Refusal } from "./refusal.ts";
import { numberOf } from "./ruleset.ts";
import type { Element } from "./ruleset.ts";
import type { Expression } from "./syntax.ts";
import { parseCIDR } from "@turnout/core";

/** A constant in canonical text and as JSON; with its ends when it is a range or a prefix. */
export type Constant = Pick<Element, "interval"> & { readonly value: string; readonly json: unknown };

/**
 * Understand a constant of a type.
 * @throws {Refusal} when it isn't one, or of another type.
 */
export function readConstant(expression: Expression, types: readonly DataType[]): Constant {
  const [type] = types;
  if (type === undefined) throw new Refusal("datatype mismatch", expression);
  switch (expression.is) {
    case "concat": {
      // nft reads the parts first, so that a bad part is what it complains of.
      const parts = expression.parts.map((part, index) => readConstant(part, [types[index] ?? type]));
      if (parts.length !== types.length) throw mismatch(expression, types);
      if (parts.some(({ interval }) => interval !== undefined)) throw new Refusal("concatenated ranges need flags interval", expression);
      return { value: parts.map(({ value }) => value).join(" . "), json: { concat: parts.map(({ json }) => json) } };
    }
    case "constant": {
      const { value, json } = readSingle(expression, type);
      if (types.length > 1) throw mismatch(expression, types);
      return { value, json };
    }
    case "prefix":
      return readPrefix(expression, type);
    case "range":
      return readRange(expression, type);
    case "list": {
      if (!type.isMask) throw new Refusal(`Basetype of type ${type.says} is not bitmask`, expression);
      const value = String(expression.items.reduce((bits, item) => bits | Number(readConstant(item, types).value), 0));
      return { value, json: type.json(value) };
    }
    default:
      throw new Refusal("syntax error, unexpected expression where a constant belongs", expression);
  }
}

function readSingle(expression: Extract<Expression, { is: "constant" }>, type: DataType): Constant {
  if (expression.isQuoted && type.name !== "ifname") throw new Refusal("datatype mismatch: expected a constant", expression);
  const reading = type.read(expression.text, expression.isQuoted);
  if ("problem" in reading) throw new Refusal(reading.problem, expression);
  return { value: reading.value, json: jsonOfKey([type], reading.value) };
}

function mismatch(expression: Expression, types: readonly DataType[]): Refusal {
  const found = expression.is === "concat" ? types.slice(0, expression.parts.length) : types.slice(0, 1);
  return new Refusal(`datatype mismatch, expected ${describeTypes(types)}, expression has type ${describeTypes(found)}`, expression);
}

function readPrefix(expression: Extract<Expression, { is: "prefix" }>, type: DataType): Constant {
  const { address, length } = expression;
  const { value } = readConstant(address, [type]);
  if (length > type.bits) throw new Refusal(`Prefix length ${length} is invalid for type of ${type.bits} bits width`, expression);
  const cidr = parseCIDR(`${value}/${length}`);
  if (cidr === undefined) throw new Refusal("Prefix expression is undefined for this type", expression);
  const to = cidr.value | ((1n << BigInt(type.bits - length)) - 1n);
  // A prefix of full length is an address, with nft as with us.
  const [addressText = ""] = cidr.text.split("/");
  if (length === type.bits) return { value: addressText, json: addressText };
  return { value: cidr.text, json: { prefix: { addr: addressText, len: length } }, interval: { from: cidr.value, to } };
}

function readRange(expression: Extract<Expression, { is: "range" }>, type: DataType): Constant {
  const [from, to] = [readConstant(expression.from, [type]), readConstant(expression.to, [type])];
  const interval = { from: numberOf(type, from.value), to: numberOf(type, to.value) };
  if (interval.from > interval.to) throw new Refusal("Range has zero or negative size", expression);
  return { value: `${from.value}-${to.value}`, json: { range: [from.json, to.json] }, interval };
}
