import { parseComment, parseConcat, parseElements, parseTimeMs } from "./parse-expression.ts";
import { parseRule } from "./parse-rule.ts";
import { Refusal } from "./refusal.ts";
import type { Command, ElementSyntax, HookSyntax, Named, TableRef, SetSyntax, TypeSyntax } from "./syntax.ts";
import { TokenReader } from "./token-reader.ts";

const PRIORITIES: Readonly<Record<string, number>> = { raw: -300, mangle: -150, dstnat: -100, filter: 0, security: 50, srcnat: 100 };
const ADDING = ["add", "create", "insert", "replace"] as const;
const ADDED = ["table", "chain", "set", "map", "rule", "element"] as const;
const SET_FLAGS = ["constant", "interval", "timeout", "dynamic"] as const;

/** Understand a whole input. @throws {Refusal} at the first place nft would stumble over. */
export function parseCommands(text: string): readonly Command[] {
  const reader = new TokenReader(text);
  const commands: Command[] = [];
  reader.skipSeparators();
  while (reader.peek().kind !== "end") {
    commands.push(parseCommand(reader));
    if (reader.peek().kind !== "end") reader.expectSeparator();
  }
  return commands;
}

function parseCommand(reader: TokenReader): Command {
  const { text } = reader.peek();
  switch (text) {
    case "delete":
      return parseDelete(reader);
    case "flush":
      return parseFlush(reader);
    case "list":
      return parseList(reader);
    default:
      return parseAdd(reader);
  }
}

function parseTableRef(reader: TokenReader): TableRef {
  const family = reader.isAt("ip6") || reader.isAt("ip") ? reader.expectOneOf(["ip", "ip6"]) : "ip";
  return { family, table: parseNamed(reader) };
}

function parseNamed(reader: TokenReader): Named {
  const { text, start, end } = reader.expectName();
  return { name: text, start, end };
}

/** `add` may be left out, and `rule`, too. */
function parseAdd(reader: TokenReader): Command {
  const start = reader.start;
  const verb = ADDING.find((word) => reader.isAt(word)) ?? "";
  if (verb !== "") reader.next();
  if (verb === "insert" || verb === "replace") {
    reader.expect("rule");
    return parseAddRule(reader, verb, start);
  }
  const kind = ADDED.find((word) => reader.isAt(word) && (verb !== "create" || word !== "rule"));
  if (kind === undefined && verb === "create") throw reader.unexpected();
  if (kind !== undefined) reader.next();
  if (kind === undefined || kind === "rule") return parseAddRule(reader, "add", start);
  const mustBeNew = verb === "create";
  const place = parseTableRef(reader);
  if (kind === "table") {
    const comment = parseTableBlock(reader);
    return { do: "add table", mustBeNew, place, ...(comment === undefined ? {} : { comment }), ...reader.since(start) };
  }
  const thing = parseNamed(reader);
  switch (kind) {
    case "chain": {
      const block = reader.isAt("{") ? parseChainBlock(reader) : {};
      return { do: "add chain", mustBeNew, place, chain: thing, ...block, ...reader.since(start) };
    }
    case "element": {
      const elements = parseElements(reader);
      return { do: "add element", mustBeNew, place, set: thing, elements, ...reader.since(start) };
    }
    case "set":
    case "map": {
      const body = parseSetBlock(reader, kind === "map");
      return { do: "add set", mustBeNew, place, set: thing, isMap: kind === "map", body, ...reader.since(start) };
    }
  }
}

function parseAddRule(reader: TokenReader, verb: "add" | "insert" | "replace", start: number): Command {
  const place = parseTableRef(reader);
  const chain = parseNamed(reader);
  const handle = verb === "replace" || reader.isAt("handle") || reader.isAt("position") ? parseHandle(reader) : undefined;
  const rule = parseRule(reader);
  const where =
    verb === "replace" ? "replace" : verb === "add" ? (handle === undefined ? "end" : "after") : handle === undefined ? "start" : "before";
  return { do: "add rule", where, place, chain, rule, ...(handle === undefined ? {} : { handle }), ...reader.since(start) };
}

function parseHandle(reader: TokenReader): { readonly number: number; readonly start: number; readonly end: number } {
  reader.expectOneOf(["handle", "position"]);
  const start = reader.start;
  const number = reader.expectNumber();
  return { number, ...reader.since(start) };
}

function parseTableBlock(reader: TokenReader): string | undefined {
  if (!reader.accept("{")) return undefined;
  let comment: string | undefined;
  reader.skipSeparators();
  if (reader.accept("comment")) {
    comment = parseComment(reader).text;
    reader.skipSeparators();
  }
  reader.expect("}");
  return comment;
}

function parseChainBlock(reader: TokenReader): Partial<Pick<Extract<Command, { do: "add chain" }>, "hook" | "policy" | "comment">> {
  let block: ReturnType<typeof parseChainBlock> = {};
  reader.expect("{");
  reader.skipSeparators();
  while (!reader.accept("}")) {
    const start = reader.start;
    if (reader.accept("type")) block = { ...block, hook: parseHook(reader, start) };
    else if (reader.accept("policy")) block = { ...block, policy: reader.expectOneOf(["accept", "drop"]) };
    else {
      reader.expect("comment");
      block = { ...block, comment: parseComment(reader).text };
    }
    reader.expectSeparator();
  }
  return block;
}

function parseHook(reader: TokenReader, start: number): HookSyntax {
  const type = reader.next().text;
  reader.expect("hook");
  const { text, start: from, end } = reader.next();
  const hook = { name: text, start: from, end };
  reader.expect("priority");
  return { type, hook, priority: parsePriority(reader), ...reader.since(start) };
}

function parsePriority(reader: TokenReader): number {
  if (reader.accept("-")) return -reader.expectNumber();
  if (reader.peek().kind === "number") return reader.expectNumber();
  const token = reader.next();
  const named = PRIORITIES[token.text];
  if (named === undefined) throw new Refusal(`'${token.text}' is invalid priority.`, token);
  if (reader.accept("+")) return named + reader.expectNumber();
  return reader.accept("-") ? named - reader.expectNumber() : named;
}

function parseSetBlock(reader: TokenReader, isMap: boolean): SetSyntax {
  let body: SetSyntax = { flags: [], elements: [] };
  reader.expect("{");
  reader.skipSeparators();
  while (!reader.accept("}")) {
    body = { ...body, ...parseSetItem(reader, isMap) };
    // The only item that needs nothing behind it.
    if (!reader.isAt("}") || body.elements.length === 0) reader.expectSeparator();
  }
  return body;
}

function parseSetItem(reader: TokenReader, isMap: boolean): Partial<SetSyntax> {
  const word = reader.expectOneOf(["type", "typeof", "flags", "size", "timeout", "comment", "elements"]);
  switch (word) {
    case "type":
    case "typeof": {
      const parse = word === "type" ? parseTypeName : parseTypeExample;
      const key = parse(reader);
      if (!isMap) return { key };
      reader.expect(":");
      return { key, data: parse(reader) };
    }
    case "flags": {
      const flags: string[] = [reader.expectOneOf(SET_FLAGS)];
      while (reader.accept(",")) flags.push(reader.expectOneOf(SET_FLAGS));
      return { flags };
    }
    case "size":
      return { size: reader.expectNumber() };
    case "timeout":
      return { timeoutMs: parseTimeMs(reader) };
    case "comment":
      return { comment: parseComment(reader).text };
    case "elements":
      reader.expect("=");
      return { elements: parseElements(reader) };
  }
}

function parseTypeName(reader: TokenReader): TypeSyntax {
  const start = reader.start;
  const names: string[] = [];
  do {
    const token = reader.peek();
    if (token.kind !== "word") throw reader.unexpected();
    names.push(reader.next().text);
  } while (reader.accept("."));
  return { by: "name", names, ...reader.since(start) };
}

function parseTypeExample(reader: TokenReader): TypeSyntax {
  const start = reader.start;
  if (reader.isAt("verdict")) return parseTypeName(reader);
  const of = parseConcat(reader);
  return { by: "example", of, ...reader.since(start) };
}

function parseDelete(reader: TokenReader): Command {
  const start = reader.start;
  reader.expect("delete");
  const kind = reader.expectOneOf(["table", "chain", "set", "map", "rule", "element"]);
  const place = parseTableRef(reader);
  if (kind === "table") return { do: "delete table", place, ...reader.since(start) };
  const thing = parseNamed(reader);
  switch (kind) {
    case "chain":
      return { do: "delete chain", place, chain: thing, ...reader.since(start) };
    case "set":
    case "map":
      return { do: "delete set", place, set: thing, isMap: kind === "map", ...reader.since(start) };
    case "rule": {
      const handle = parseHandle(reader);
      return { do: "delete rule", place, chain: thing, handle, ...reader.since(start) };
    }
    case "element": {
      const elements: readonly ElementSyntax[] = parseElements(reader);
      return { do: "delete element", mustBeNew: false, place, set: thing, elements, ...reader.since(start) };
    }
  }
}

function parseFlush(reader: TokenReader): Command {
  const start = reader.start;
  reader.expect("flush");
  const kind = reader.expectOneOf(["ruleset", "table", "chain", "set", "map"]);
  if (kind === "ruleset") return { do: "flush ruleset", ...parseFamily(reader), ...reader.since(start) };
  const place = parseTableRef(reader);
  if (kind === "table") return { do: "flush table", place, ...reader.since(start) };
  const thing = parseNamed(reader);
  if (kind === "chain") return { do: "flush chain", place, chain: thing, ...reader.since(start) };
  return { do: "flush set", place, set: thing, isMap: kind === "map", ...reader.since(start) };
}

function parseFamily(reader: TokenReader): { readonly family?: "ip" | "ip6" } {
  return reader.isAt("ip") || reader.isAt("ip6") ? { family: reader.expectOneOf(["ip", "ip6"]) } : {};
}

function parseList(reader: TokenReader): Command {
  const start = reader.start;
  reader.expect("list");
  const what = reader.expectOneOf(["ruleset", "tables", "table", "set"]);
  if (what === "table") return { do: "list table", place: parseTableRef(reader), ...reader.since(start) };
  if (what === "set") return { do: "list set", place: parseTableRef(reader), set: parseNamed(reader), ...reader.since(start) };
  return { do: "list", what, ...parseFamily(reader), ...reader.since(start) };
}
