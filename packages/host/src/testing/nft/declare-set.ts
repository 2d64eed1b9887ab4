import { compileSelector } from "./compile-expression.ts";
import type { RuleContext } from "./rule-context.ts";
import { dataTypeNamed } from "./data-types.ts";
import type { DataType } from "./data-types.ts";
import { Refusal } from "./refusal.ts";
import type { NftSet, Table } from "./ruleset.ts";
import type { Command, TypeSyntax } from "./syntax.ts";

const FLAG_ORDER = ["constant", "interval", "timeout", "dynamic"];
/** What nft gives a dynamic set that says no size. */
const DYNAMIC_SIZE = 65_535;

/** Make the empty set that a declaration asks for, still without a handle. @throws {Refusal} for a type nft doesn't know. */
export function declareSet({ set: named, isMap, body }: Extract<Command, { do: "add set" }>, table: Table): Omit<NftSet, "handle"> {
  if (body.key === undefined) throw new Refusal("set definition does not specify key", named);
  if (isMap && body.data === undefined) throw new Refusal("map definition does not specify mapping data type", named);
  const key = typesOf(body.key, table);
  const wanted = [...body.flags, ...(body.timeoutMs === undefined ? [] : ["timeout"])];
  const flags = FLAG_ORDER.filter((flag) => wanted.includes(flag));
  const size = body.size ?? (flags.includes("dynamic") ? DYNAMIC_SIZE : undefined);
  if (flags.includes("interval") && key.types.length > 1) throw new Refusal("the fake has no concatenated intervals", named);
  return {
    name: named.name,
    types: key.types,
    ...dataOf(body.data, table),
    flags,
    size,
    timeoutMs: body.timeoutMs,
    comment: body.comment,
    elements: new Map(),
    targets: new Map(),
    uses: 0,
  };
}

function dataOf(syntax: TypeSyntax | undefined, table: Table): Pick<NftSet, "data" | "dataProtocol"> {
  if (syntax === undefined) return { data: undefined, dataProtocol: undefined };
  if (isVerdict(syntax)) return { data: "verdict", dataProtocol: undefined };
  const { types, protocol } = typesOf(syntax, table);
  return { data: types, dataProtocol: protocol };
}

function isVerdict(type: TypeSyntax): boolean {
  return type.by === "name" && type.names.length === 1 && type.names[0] === "verdict";
}

function typesOf(syntax: TypeSyntax, table: Table): { readonly types: readonly DataType[]; readonly protocol: string | undefined } {
  if (syntax.by === "example") {
    const context: RuleContext = { table, nowMs: 0, protocols: [], reset: undefined, dependency: undefined, chains: [], sets: [] };
    const { types } = compileSelector(syntax.of, context);
    // `th dport` says "th", which is no rule's protocol.
    const [protocol = JSON.stringify(syntax.of).includes('"th"') ? "th" : undefined] = context.protocols;
    return { types, protocol };
  }
  const types = syntax.names.map((name) => {
    const type = dataTypeNamed(name);
    if (type === undefined) throw new Refusal(`unknown datatype ${name}`, syntax);
    return type;
  });
  return { types, protocol: undefined };
}
