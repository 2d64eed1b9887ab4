import { Visitor } from "rolldown/utils";
import type { ESTree, ParseResult } from "rolldown/utils";

/** A place in a file with what is there. */
export interface SourcePosition {
  readonly what: string;
  readonly line: number;
}

/** What a file contains that a check may object to. */
export interface Suspects {
  /** Uses of clock, random, timers, process, console and the like. */
  readonly effects: readonly SourcePosition[];
  /** Lines with a `.catch()` that does nothing. */
  readonly emptyCatches: readonly number[];
  /** Texts, the fixed parts of templates, and names of properties: what a program may say or compare. What is imported from is none. */
  readonly texts: readonly SourcePosition[];
  /** Pages (`*.md`) that comments cite, as they are written there. */
  readonly citedPages: readonly SourcePosition[];
}

type LineAt = (offset: number) => number;
type Comment = ParseResult["comments"][number];

const EFFECT_GLOBALS = new Set([
  "process",
  "console",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "performance",
  "fetch",
  "crypto",
  "globalThis",
]);
const EFFECT_MEMBERS = new Set(["Date.now", "Math.random", "AbortSignal.timeout"]);

function isNamed(key: ESTree.Node): key is Extract<ESTree.Node, { type: "Identifier" }> {
  return key.type === "Identifier";
}

function effectsOf(program: ESTree.Program, lineAt: LineAt): SourcePosition[] {
  const labels = new Set<ESTree.Node>();
  const found: SourcePosition[] = [];
  const add = (what: string, node: ESTree.Span): void => void found.push({ what, line: lineAt(node.start) });
  const label = (node: { key: ESTree.Node; computed: boolean }): void => {
    if (!node.computed) labels.add(node.key);
  };
  new Visitor({
    MemberExpression(node) {
      if (node.computed) return;
      labels.add(node.property);
      const name = node.object.type === "Identifier" && isNamed(node.property) ? `${node.object.name}.${node.property.name}` : "";
      if (EFFECT_MEMBERS.has(name)) add(name, node);
    },
    // In `{ process }` key and value are two nodes at one place, so the value still counts.
    Property: label,
    MethodDefinition: label,
    PropertyDefinition: label,
    TSPropertySignature: label,
    TSMethodSignature: label,
    NewExpression(node) {
      if (node.callee.type === "Identifier" && node.callee.name === "Date" && node.arguments.length === 0) add("new Date()", node);
    },
    CallExpression(node) {
      if (node.callee.type === "Identifier" && node.callee.name === "Date") add("Date()", node);
    },
    Identifier(node) {
      if (EFFECT_GLOBALS.has(node.name) && !labels.has(node)) add(node.name, node);
    },
  }).visit(program);
  return found;
}

function isEmptyHandler(node: ESTree.Node | undefined): boolean {
  if (node?.type !== "ArrowFunctionExpression" && node?.type !== "FunctionExpression") return false;
  const { body } = node;
  if (body === null) return false;
  if (body.type === "BlockStatement") return body.body.length === 0;
  return (body.type === "Identifier" && body.name === "undefined") || (body.type === "Literal" && body.value === null);
}

function emptyCatchesOf(program: ESTree.Program, lineAt: LineAt): number[] {
  const found: number[] = [];
  new Visitor({
    CallExpression(node) {
      const { callee } = node;
      const isCatch = callee.type === "MemberExpression" && isNamed(callee.property) && callee.property.name === "catch";
      if (isCatch && isEmptyHandler(node.arguments[0])) found.push(lineAt(node.start));
    },
  }).visit(program);
  return found;
}

function textsOf(program: ESTree.Program, lineAt: LineAt): SourcePosition[] {
  const sources = new Set<ESTree.Node>();
  const found: SourcePosition[] = [];
  const add = (what: string, node: ESTree.Span): void => void found.push({ what, line: lineAt(node.start) });
  new Visitor({
    ImportDeclaration: (node) => void sources.add(node.source),
    ExportAllDeclaration: (node) => void sources.add(node.source),
    ExportNamedDeclaration: (node) => void (node.source !== null && sources.add(node.source)),
    ImportExpression: (node) => void sources.add(node.source),
    TSImportType: (node) => void sources.add(node.source),
    Property(node) {
      if (!node.computed && isNamed(node.key)) add(node.key.name, node.key);
    },
    Literal(node) {
      if (typeof node.value === "string" && !sources.has(node)) add(node.value, node);
    },
    TemplateElement: (node) => add(node.value.raw, node),
  }).visit(program);
  return found;
}

/** A page's path may stand in a comment with or without the folders above it; a URL's last part is no page of the repository. */
const CITED_PAGE = /(?<![\w./:-])[\w./-]+\.md\b/g;

function citedPagesOf(comments: readonly Comment[], lineAt: LineAt): SourcePosition[] {
  return comments.flatMap(({ value, start }) =>
    [...value.matchAll(CITED_PAGE)].map(({ 0: what, index }) => ({ what, line: lineAt(start + "//".length + index) })),
  );
}

/** Walk a parsed file for what a check may object to. Pure; never throws. */
export function findSuspects(program: ESTree.Program, comments: readonly Comment[], lineAt: LineAt): Suspects {
  return {
    effects: effectsOf(program, lineAt),
    emptyCatches: emptyCatchesOf(program, lineAt),
    texts: textsOf(program, lineAt),
    citedPages: citedPagesOf(comments, lineAt),
  };
}
