import { posix } from "node:path";
import { parseSync, Visitor } from "rolldown/utils";
import type { ESTree } from "rolldown/utils";
import { findSuspects } from "./suspects.ts";
import type { Suspects } from "./suspects.ts";

/** One import or re-export statement, dynamic import or import type. */
export interface Import {
  readonly specifier: string;
  /** Imported names, `default`, or `*`; empty for an import for its side effect. */
  readonly names: readonly string[];
  readonly isTypeOnly: boolean;
  readonly line: number;
}

/** A name that a file exports by declaring it itself. */
export interface ExportedDeclaration {
  readonly name: string;
  /** `function`, `class`, `interface`, `type`, `const`, … */
  readonly kind: string;
  readonly isDocumented: boolean;
  readonly line: number;
}

/** A name that a file hands on from another module; `imported` is `*` for everything or a namespace. */
export interface Reexport {
  readonly specifier: string;
  readonly imported: string;
  /** `*` when every name goes through as it is. */
  readonly exported: string;
}

/** What the checks know of one TypeScript file. Paths are relative to the repository, with forward slashes. */
export interface SourceFile extends Suspects {
  readonly path: string;
  /** A test, or what only tests use: a file in a folder `test-support`. */
  readonly isTest: boolean;
  readonly imports: readonly Import[];
  readonly declarations: readonly ExportedDeclaration[];
  readonly reexports: readonly Reexport[];
}

type Statement = ESTree.Program["body"][number];

function nameOf(node: ESTree.ModuleExportName): string {
  return node.type === "Literal" ? node.value : node.name;
}

function importsOf(program: ESTree.Program, lineAt: (offset: number) => number): Import[] {
  const imports: Import[] = [];
  const add = (specifier: string, names: readonly string[], isTypeOnly: boolean, node: ESTree.Span): void => {
    imports.push({ specifier, names, isTypeOnly, line: lineAt(node.start) });
  };
  new Visitor({
    ImportDeclaration(node) {
      const names = node.specifiers.map((one) => {
        if (one.type === "ImportSpecifier") return nameOf(one.imported);
        return one.type === "ImportDefaultSpecifier" ? "default" : "*";
      });
      const areTypes =
        node.specifiers.length > 0 && node.specifiers.every((one) => one.type === "ImportSpecifier" && one.importKind === "type");
      add(node.source.value, names, node.importKind === "type" || areTypes, node);
    },
    ExportAllDeclaration(node) {
      add(node.source.value, ["*"], node.exportKind === "type", node);
    },
    ExportNamedDeclaration(node) {
      if (node.source === null) return;
      const areTypes = node.specifiers.length > 0 && node.specifiers.every((one) => one.exportKind === "type");
      add(
        node.source.value,
        node.specifiers.map((one) => nameOf(one.local)),
        node.exportKind === "type" || areTypes,
        node,
      );
    },
    ImportExpression(node) {
      if (node.source.type === "Literal" && typeof node.source.value === "string") add(node.source.value, ["*"], false, node);
    },
    TSImportType(node) {
      add(node.source.value, ["*"], true, node);
    },
  }).visit(program);
  return imports;
}

/** Names and kinds a declaration statement introduces; a destructuring pattern has none of interest. */
function declaredBy(node: ESTree.Declaration | Statement): { name: string; kind: string }[] {
  switch (node.type) {
    case "VariableDeclaration":
      return node.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [{ name: id.name, kind: node.kind }] : []));
    case "FunctionDeclaration":
    case "TSDeclareFunction":
      return node.id === null ? [] : [{ name: node.id.name, kind: "function" }];
    case "ClassDeclaration":
      return node.id === null ? [] : [{ name: node.id.name, kind: "class" }];
    case "TSInterfaceDeclaration":
      return [{ name: node.id.name, kind: "interface" }];
    case "TSTypeAliasDeclaration":
      return [{ name: node.id.name, kind: "type" }];
    case "TSEnumDeclaration":
      return [{ name: node.id.name, kind: "enum" }];
    default:
      return [];
  }
}

interface Local {
  readonly kind: string;
  readonly isDocumented: boolean;
}

/** Follow `export default thing` and `export { thing }` to the statement that declares it, and to that one's docstring. */
function declarationsOf(
  program: ESTree.Program,
  isDocumented: (node: ESTree.Span) => boolean,
  lineAt: (offset: number) => number,
): ExportedDeclaration[] {
  const locals = new Map<string, Local>();
  for (const statement of program.body) {
    for (const { name, kind } of declaredBy(statement)) locals.set(name, { kind, isDocumented: isDocumented(statement) });
  }
  const exported: ExportedDeclaration[] = [];
  for (const statement of program.body) {
    const line = lineAt(statement.start);
    if (statement.type === "ExportNamedDeclaration" && statement.declaration !== null) {
      for (const { name, kind } of declaredBy(statement.declaration))
        exported.push({ name, kind, isDocumented: isDocumented(statement), line });
    } else if (statement.type === "ExportNamedDeclaration" && statement.source === null) {
      for (const one of statement.specifiers) {
        const local = locals.get(nameOf(one.local));
        // A name that came in by an import is documented where it is declared.
        if (local !== undefined) exported.push({ name: nameOf(one.exported), ...local, line });
      }
    } else if (statement.type === "ExportDefaultDeclaration") {
      const { declaration } = statement;
      if (declaration.type === "Identifier" && !locals.has(declaration.name)) continue;
      const local = declaration.type === "Identifier" ? locals.get(declaration.name) : undefined;
      const kind = local?.kind ?? /^(?:TS)?(Class|Function|Interface)/.exec(declaration.type)?.[1]?.toLowerCase() ?? "const";
      exported.push({ name: "default", kind, isDocumented: isDocumented(statement) || local?.isDocumented === true, line });
    }
  }
  return exported;
}

function reexportsOf(program: ESTree.Program, imports: ReadonlyMap<string, Reexport>): Reexport[] {
  return program.body.flatMap((statement): Reexport[] => {
    if (statement.type === "ExportAllDeclaration") {
      return [
        { specifier: statement.source.value, imported: "*", exported: statement.exported === null ? "*" : nameOf(statement.exported) },
      ];
    }
    if (statement.type === "ExportDefaultDeclaration" && statement.declaration.type === "Identifier") {
      const imported = imports.get(statement.declaration.name);
      return imported === undefined ? [] : [{ ...imported, exported: "default" }];
    }
    if (statement.type !== "ExportNamedDeclaration") return [];
    const { source } = statement;
    return statement.specifiers.flatMap((one): Reexport[] => {
      const local = nameOf(one.local);
      const exported = nameOf(one.exported);
      if (source !== null) return [{ specifier: source.value, imported: local, exported }];
      const imported = imports.get(local);
      return imported === undefined ? [] : [{ ...imported, exported }];
    });
  });
}

/** Local names that came in by import, as the re-export they would be. */
function importedNames(program: ESTree.Program): ReadonlyMap<string, Reexport> {
  const names = new Map<string, Reexport>();
  for (const statement of program.body) {
    if (statement.type !== "ImportDeclaration") continue;
    for (const one of statement.specifiers) {
      const imported = one.type === "ImportSpecifier" ? nameOf(one.imported) : one.type === "ImportDefaultSpecifier" ? "default" : "*";
      names.set(one.local.name, { specifier: statement.source.value, imported, exported: one.local.name });
    }
  }
  return names;
}

/**
 * Read one TypeScript file into what the checks need.
 * @throws {Error} when it does not parse, naming the file.
 */
export function parseSource(path: string, text: string): SourceFile {
  const { program, comments, errors } = parseSync(path, text);
  const broken = errors[0];
  if (broken !== undefined) throw new Error(`${path}: ${broken.message}`);
  const lineStarts = [0, ...[...text.matchAll(/\n/g)].map((match) => match.index + 1)];
  const lineAt = (offset: number): number => {
    const next = lineStarts.findIndex((start) => start > offset);
    return next === -1 ? lineStarts.length : next;
  };
  const docEnds = comments.filter((comment) => comment.type === "Block" && comment.value.startsWith("*")).map((comment) => comment.end);
  const isDocumented = (node: ESTree.Span): boolean =>
    docEnds.some((end) => end <= node.start && text.slice(end, node.start).trim() === "");
  return {
    path: posix.normalize(path),
    isTest: path.endsWith(".test.ts") || path.includes("/test-support/"),
    imports: importsOf(program, lineAt),
    declarations: declarationsOf(program, isDocumented, lineAt),
    reexports: reexportsOf(program, importedNames(program)),
    ...findSuspects(program, comments, lineAt),
  };
}
