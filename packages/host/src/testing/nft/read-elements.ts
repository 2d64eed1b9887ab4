import { readConstant } from "./constants.ts";
import { Refusal, kernelRefusal } from "./refusal.ts";
import type { Chain, Element, NftSet, Table, VerdictValue } from "./ruleset.ts";
import type { ElementSyntax, VerdictSyntax } from "./syntax.ts";
import { numberOf } from "./ruleset.ts";

/** Understand elements written for a set. @throws {Refusal} when one can't be in it. */
export function readElements(elements: readonly ElementSyntax[], set: NftSet, table: Table, nowMs: number): readonly Element[] {
  return elements.map((element) => readElement(element, set, table, nowMs));
}

function readElement(syntax: ElementSyntax, set: NftSet, table: Table, nowMs: number): Element {
  const { value, json, interval } = readConstant(syntax.key, set.types);
  const isInterval = set.flags.includes("interval");
  if (interval !== undefined && !isInterval) {
    const kind = syntax.key.is === "range" ? "range" : "prefix";
    throw new Refusal(`You must add 'flags interval' to your set declaration if you want to add ${kind} elements`, syntax.key);
  }
  if (syntax.timeoutMs !== undefined && !set.flags.includes("timeout")) throw kernelRefusal("EINVAL", syntax);
  const timeoutMs = syntax.timeoutMs ?? set.timeoutMs;
  const [type] = set.types;
  const point = isInterval && interval === undefined && type !== undefined ? numberOf(type, value) : undefined;
  const ends = point === undefined ? interval : { from: point, to: point };
  const data = readData(syntax, set, table);
  return {
    key: value,
    json,
    ...(ends === undefined ? {} : { interval: ends }),
    ...(data === undefined ? {} : { data }),
    ...(syntax.comment === undefined ? {} : { comment: syntax.comment.text }),
    ...(syntax.timeoutMs === undefined ? {} : { timeoutMs: syntax.timeoutMs }),
    ...(timeoutMs === undefined ? {} : { expiresAtMs: nowMs + timeoutMs }),
  };
}

function readData({ data, ...span }: ElementSyntax, set: NftSet, table: Table): Element["data"] {
  if (data === undefined) return undefined;
  if (set.data === undefined) throw new Refusal("set is not a map", span);
  if (data.is === "verdict") {
    if (set.data !== "verdict") throw kernelRefusal("EINVAL", span);
    return verdictValue(data, table);
  }
  if (set.data === "verdict") throw new Refusal("datatype mismatch, expected verdict", data);
  return readConstant(data, set.data).value;
}

/** Make a verdict of its words. @throws {Refusal} when there is no such chain, or packets come to it from outside. */
export function verdictValue({ verdict, chain: named, ...span }: VerdictSyntax, table: Table): VerdictValue {
  if (named === undefined) return { verdict };
  const chain = chainOf(table, named);
  if (chain.base !== undefined) throw kernelRefusal("EOPNOTSUPP", span);
  return { verdict, chain };
}

/** Find a chain. @throws {Refusal} when the kernel has none of that name. */
export function chainOf(table: Table, named: { readonly name: string; readonly start: number; readonly end: number }): Chain {
  const chain = table.chains.get(named.name);
  if (chain === undefined) throw kernelRefusal("ENOENT", named);
  return chain;
}
