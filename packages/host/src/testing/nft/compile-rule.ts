import { learnKey } from "./learn-key.ts";
import { compileSelector } from "./compile-expression.ts";
import type { Selector } from "./compile-expression.ts";
import type { RuleContext } from "./rule-context.ts";
import { compileMatch } from "./compile-match.ts";
import { compileNat } from "./compile-nat.ts";
import { readConstant } from "./constants.ts";
import { DATA_TYPES, describeTypes, integerType, isSameType } from "./data-types.ts";
import { verdictJson } from "./json.ts";
import { verdictValue } from "./read-elements.ts";
import { deferKernelRefusal, kernelRefusal, Refusal } from "./refusal.ts";
import { findElement } from "./ruleset.ts";
import type { Rule, Statement, StepResult, Table } from "./ruleset.ts";
import type { Hook } from "./hooks.ts";
import { resolveSet } from "./set-references.ts";
import type { Expression, RuleSyntax, StatementSyntax } from "./syntax.ts";
import type { Walk } from "./walk.ts";

const REJECT_HOOKS: readonly Hook[] = ["prerouting", "input", "forward", "output"];
const ACTIONS: ReadonlySet<StatementSyntax["is"]> = new Set(["counter", "log", "mangle", "dynset"] as const);
const TCP_MATCH = { match: { op: "==", left: { meta: { key: "l4proto" } }, right: "tcp" } };
const REJECT: StepResult = { verdict: "reject" };

/** A rule that nft takes, still without a handle; what the kernel has against it, if anything. */
export interface CompiledRule {
  readonly rule: Omit<Rule, "handle">;
  readonly refusal: Refusal | undefined;
}

/** Make a rule of its words. @throws {Refusal} for what nft would not take. */
export function compileRule(syntax: RuleSyntax, table: Table, nowMs: number): CompiledRule {
  const isReset = syntax.statements.some((statement) => statement.is === "reject" && statement.type === "tcp reset");
  const reset = isReset ? { isHidden: false } : undefined;
  const context: RuleContext = { table, nowMs, protocols: [], reset, dependency: reset, chains: [], sets: [] };
  const statements: Statement[] =
    reset === undefined ? [] : [{ json: TCP_MATCH, listing: reset, run: (walk) => (walk.protocol === "tcp" ? undefined : "break") }];
  let refusal: Refusal | undefined;
  let terminal: StatementSyntax | undefined;
  for (const statement of syntax.statements) {
    if (terminal !== undefined) throw new Refusal("Statement after terminal statement has no effect", statement);
    refusal = deferKernelRefusal(refusal, () => statements.push(compileStatement(statement, context)));
    if (isTerminal(statement)) terminal = statement;
    // nft forgets what a match was for when something else than a match comes behind it.
    if (ACTIONS.has(statement.is)) context.dependency = undefined;
  }
  const { chains, sets } = context;
  return {
    rule: {
      comment: syntax.comment?.text,
      text: syntax.text,
      statements: inHeaderOrder(statements),
      chains,
      sets,
    },
    refusal,
  };
}

/** nft merges neighbouring fields of a header into one comparison, and lists them in the order of the header. */
function inHeaderOrder(statements: readonly Statement[]): readonly Statement[] {
  const ordered = [...statements];
  for (let index = 1; index < ordered.length; index++) {
    const [before, here] = [ordered[index - 1], ordered[index]];
    if (before?.field === undefined || here?.field === undefined || before.field.header !== here.field.header) continue;
    if (here.field.offset + here.field.length !== before.field.offset) continue;
    ordered.splice(index - 1, 2, here, before.field.protocol === "th" ? withProtocol(before, here.field.protocol) : before);
  }
  return ordered;
}

/** A `th` field behind one of a protocol is listed as that protocol's. */
function withProtocol(statement: Statement, protocol: string): Statement {
  const { match } = statement.json as { readonly match: { readonly left: { readonly payload: { readonly field: string } } } };
  return { ...statement, json: { match: { ...match, left: { payload: { protocol, field: match.left.payload.field } } } } };
}

function isTerminal(statement: StatementSyntax): boolean {
  return statement.is === "reject" || statement.is === "nat" || (statement.is === "verdict" && statement.verdict !== "continue");
}

function compileStatement(statement: StatementSyntax, context: RuleContext): Statement {
  switch (statement.is) {
    case "match":
      return compileMatch(statement, context);
    case "verdict": {
      const verdict = verdictValue(statement, context.table);
      if (verdict.chain !== undefined) context.chains.push(verdict.chain);
      return { json: verdictJson(verdict), run: () => verdict };
    }
    case "vmap":
      return compileVerdictMap(statement, context);
    case "mangle":
      return compileMangle(statement, context);
    case "nat":
      return compileNat(statement, context);
    case "reject":
      return compileReject(statement, context);
    case "counter":
      return { json: { counter: { packets: statement.packets, bytes: statement.bytes } }, run: () => undefined };
    case "log":
      return { json: { log: statement.prefix === "" ? null : { prefix: statement.prefix } }, run: () => undefined };
    case "dynset":
      return compileDynset(statement, context);
  }
}

function compileVerdictMap({ key, data }: Extract<StatementSyntax, { is: "vmap" }>, context: RuleContext): Statement {
  const selector = compileSelector(key, context);
  const { set, json } = resolveSet(data, selector.types, context, "verdict");
  if (set.data !== "verdict") throw new Refusal("Expression is not a map", data);
  if (!isSameType(set.types, selector.types)) {
    const what = `datatype mismatch, map expects ${describeTypes(set.types)}, mapping expression has type ${describeTypes(selector.types)}`;
    throw new Refusal(what, key);
  }
  return {
    json: { vmap: { key: selector.json, data: json } },
    run(walk: Walk): StepResult {
      const value = selector.read(walk);
      const found = value === undefined ? undefined : findElement(set, value, walk.nowMs)?.data;
      return typeof found === "object" ? found : "break";
    },
  };
}

function compileMangle({ target, value: expression }: Extract<StatementSyntax, { is: "mangle" }>, context: RuleContext): Statement {
  const value = isConstant(expression) ? constantSelector(expression) : compileSelector(expression, context);
  if (!isSameType(value.types, [DATA_TYPES.mark]) && value.types[0] !== integerType(32)) {
    throw new Refusal(`datatype mismatch: expected packet mark, expression has type ${describeTypes(value.types)}`, expression);
  }
  return {
    json: { mangle: { key: { [target]: { key: "mark" } }, value: value.json } },
    run(walk: Walk): StepResult {
      const mark = value.read(walk);
      if (mark === undefined) return "break";
      if (target === "meta") walk.mark = Number(mark);
      else walk.ctMark = Number(mark);
      return undefined;
    },
  };
}

function isConstant({ is }: Expression): boolean {
  return is === "constant" || is === "prefix" || is === "range";
}

function constantSelector(expression: Expression): Selector {
  const { value, json, interval } = readConstant(expression, [DATA_TYPES.mark]);
  if (interval !== undefined) throw new Refusal("datatype mismatch: expected a single packet mark", expression);
  return { types: [DATA_TYPES.mark], json, read: () => value };
}

function compileReject(statement: Extract<StatementSyntax, { is: "reject" }>, context: RuleContext): Statement {
  const { type, code } = statement;
  const own = context.table.family === "ip" ? "icmp" : "icmpv6";
  if (type === "tcp reset") {
    if (context.protocols.some((one) => one !== "tcp")) throw new Refusal("you cannot use tcp reset with this protocol", statement);
    if (context.dependency !== undefined) context.dependency.isHidden = true;
    return { json: { reject: { type } }, demand: { hooks: REJECT_HOOKS }, run: () => REJECT };
  }
  if (type !== "" && type !== own) throw new Refusal(`conflicting protocols specified: ${context.table.family} vs. ${type}`, statement);
  return { json: { reject: { type: own, expr: code } }, demand: { hooks: REJECT_HOOKS }, run: () => REJECT };
}

function compileDynset(statement: Extract<StatementSyntax, { is: "dynset" }>, context: RuleContext): Statement {
  const { operation, element } = statement;
  const { set, json } = resolveSet({ is: "named", ...statement.set }, [], context);
  const key = compileSelector(element.key, context);
  if (!isSameType(set.types, key.types)) {
    const what = `datatype mismatch, expected ${describeTypes(set.types)}, expression has type ${describeTypes(key.types)}`;
    throw new Refusal(what, element.key);
  }
  if (set.data !== undefined) throw new Refusal("set is a map, and no data is given", statement);
  const isUpdatable = set.flags.includes("dynamic") || set.flags.includes("timeout");
  const hasTimeout = element.timeoutMs !== undefined;
  if (!isUpdatable || set.flags.includes("interval") || (hasTimeout && !set.flags.includes("timeout"))) {
    throw kernelRefusal("EOPNOTSUPP", statement);
  }
  const own = hasTimeout ? { timeoutMs: element.timeoutMs } : {};
  const elementJson = hasTimeout ? { elem: { val: key.json, timeout: Math.floor((element.timeoutMs ?? 0) / 1_000) } } : key.json;
  return {
    json: { set: { op: operation, elem: elementJson, set: json } },
    run(walk: Walk): StepResult {
      const value = key.read(walk);
      if (value === undefined) return "break";
      return learnKey(walk, set, value, { isRenewing: operation === "update", ...own }) ? undefined : "break";
    },
  };
}
