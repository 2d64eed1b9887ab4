import type { NftExpression, NftRuleStatement, NftVerdict } from "./syntax.ts";

/** A field of a header: `ip daddr`, `th dport`. */
export function payload(protocol: string, field: string): NftExpression {
  return { payload: { protocol, field } };
}

/** What the kernel knows of a packet: `meta mark`, `iifname`. */
export function meta(key: string): NftExpression {
  return { meta: { key } };
}

/** What conntrack knows of its flow; with a direction, of the packets that opened it, or of the answers. */
export function ct(key: string, dir?: "original" | "reply"): NftExpression {
  return { ct: { key, ...(dir === undefined ? {} : { dir }) } };
}

/** Several values as one key. */
export function concat(...parts: readonly NftExpression[]): NftExpression {
  return { concat: parts };
}

/** A random number from `offset` on (absent: 0), below `mod` more. */
export function numgen(mod: number, offset?: number): NftExpression {
  return { numgen: { mode: "random", mod, ...(offset === undefined ? {} : { offset }) } };
}

/** A comparison. */
export function match(left: NftExpression, right: NftExpression, op: "==" | "!=" | "in" = "=="): NftRuleStatement {
  return { match: { op, left, right } };
}

/** Look the verdict up. */
export function vmap(key: NftExpression, data: NftExpression): NftRuleStatement {
  return { vmap: { key, data } };
}

/** Set the packet's mark. */
export function setMark(value: NftExpression): NftRuleStatement {
  return { mangle: { key: meta("mark"), value } };
}

/** On to a chain, and not back. */
export function goTo(target: string): NftVerdict {
  return { goto: { target } };
}
