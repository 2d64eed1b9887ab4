import type { Span } from "./refusal.ts";

/** Operators on bits, as nft prints them. */
export type BitOperator = "&" | "|" | "^";

/** How a match compares; `in` is what nft makes of an unsaid operator on bit masks, see `compile-match.ts`. */
export type Comparison = "" | "==" | "!=" | "<" | ">" | "<=" | ">=";

/** An expression as it was written, not yet understood: what a constant means depends on what it is compared with. */
export type Expression = Span &
  (
    | { readonly is: "payload"; readonly protocol: string; readonly field: string }
    | { readonly is: "meta" | "ct"; readonly key: string }
    | { readonly is: "fib"; readonly flags: readonly string[]; readonly result: string }
    | { readonly is: "numgen"; readonly mode: "random" | "inc"; readonly mod: number; readonly offset: number }
    | { readonly is: "concat"; readonly parts: readonly Expression[] }
    | { readonly is: "bits"; readonly operator: BitOperator; readonly left: Expression; readonly right: Expression }
    | { readonly is: "constant"; readonly text: string; readonly isQuoted: boolean }
    | { readonly is: "prefix"; readonly address: Expression; readonly length: number }
    | { readonly is: "range"; readonly from: Expression; readonly to: Expression }
    | { readonly is: "list"; readonly items: readonly Expression[] }
    | { readonly is: "map"; readonly key: Expression; readonly data: SetReference }
    | SetReference
  );

/** A named set, or one written out. */
export type SetReference = Span &
  ({ readonly is: "named"; readonly name: string } | { readonly is: "elements"; readonly elements: readonly ElementSyntax[] });

/** Where a packet goes next. */
export interface VerdictSyntax extends Span {
  readonly is: "verdict";
  readonly verdict: "accept" | "drop" | "continue" | "return" | "jump" | "goto";
  /** For jump and goto: the chain, and where its name stands. */
  readonly chain?: { readonly name: string } & Span;
}

/** An element of a set or map as it was written. */
export interface ElementSyntax extends Span {
  readonly key: Expression;
  readonly comment?: { readonly text: string } & Span;
  readonly timeoutMs?: number;
  readonly data?: Expression | VerdictSyntax;
}

/** One statement of a rule. */
export type StatementSyntax = Span &
  (
    | { readonly is: "match"; readonly left: Expression; readonly comparison: Comparison; readonly right: Expression }
    | VerdictSyntax
    | { readonly is: "vmap"; readonly key: Expression; readonly data: SetReference }
    | { readonly is: "mangle"; readonly target: "meta" | "ct"; readonly value: Expression }
    | NatSyntax
    | { readonly is: "reject"; readonly type: "" | "icmp" | "icmpv6" | "tcp reset"; readonly code: string }
    | { readonly is: "counter"; readonly packets: number; readonly bytes: number }
    | { readonly is: "log"; readonly prefix: string }
    | {
        readonly is: "dynset";
        readonly operation: "add" | "update";
        readonly set: { readonly name: string } & Span;
        readonly element: ElementSyntax;
      }
  );

/** An address translation as it was written. */
export interface NatSyntax extends Span {
  readonly is: "nat";
  readonly type: "dnat" | "snat" | "masquerade" | "redirect";
  readonly family: "" | "ip" | "ip6";
  readonly address?: Expression;
  readonly port?: Expression;
  readonly flags: readonly string[];
}

/** A rule as it was written. */
export interface RuleSyntax extends Span {
  readonly statements: readonly StatementSyntax[];
  readonly comment?: { readonly text: string } & Span;
  /** The rule's words, without its comment, for people. */
  readonly text: string;
}

/** Names a table, and what is in it; `span` fields say where the names stand. */
export interface TableRef {
  readonly family: "ip" | "ip6";
  readonly table: { readonly name: string } & Span;
}

/** The type of a set's key or a map's data. */
export type TypeSyntax = Span &
  ({ readonly by: "name"; readonly names: readonly string[] } | { readonly by: "example"; readonly of: Expression });

/** What a set is declared as. */
export interface SetSyntax {
  readonly key?: TypeSyntax;
  /** Of a map; undefined for a set. */
  readonly data?: TypeSyntax;
  readonly flags: readonly string[];
  readonly size?: number;
  readonly timeoutMs?: number;
  readonly comment?: string;
  readonly elements: readonly ElementSyntax[];
}

/** What a base chain is declared as. */
export interface HookSyntax extends Span {
  readonly type: string;
  readonly hook: { readonly name: string } & Span;
  readonly priority: number;
}

/** Something a place has by name. */
export type Named = { readonly name: string } & Span;

/** One command. */
export type Command = Span &
  (
    | { readonly do: "add table"; readonly mustBeNew: boolean; readonly place: TableRef; readonly comment?: string }
    | {
        readonly do: "add chain";
        readonly mustBeNew: boolean;
        readonly place: TableRef;
        readonly chain: Named;
        readonly hook?: HookSyntax;
        readonly policy?: "accept" | "drop";
        readonly comment?: string;
      }
    | {
        readonly do: "add set";
        readonly mustBeNew: boolean;
        readonly place: TableRef;
        readonly set: Named;
        readonly isMap: boolean;
        readonly body: SetSyntax;
      }
    | {
        readonly do: "add rule";
        readonly where: "end" | "start" | "after" | "before" | "replace";
        readonly handle?: { readonly number: number } & Span;
        readonly place: TableRef;
        readonly chain: Named;
        readonly rule: RuleSyntax;
      }
    | {
        readonly do: "add element" | "delete element";
        readonly mustBeNew: boolean;
        readonly place: TableRef;
        readonly set: Named;
        readonly elements: readonly ElementSyntax[];
      }
    | { readonly do: "delete table" | "flush table"; readonly place: TableRef }
    | { readonly do: "delete chain" | "flush chain"; readonly place: TableRef; readonly chain: Named }
    | { readonly do: "delete set" | "flush set"; readonly place: TableRef; readonly set: Named; readonly isMap: boolean }
    | { readonly do: "delete rule"; readonly place: TableRef; readonly chain: Named; readonly handle: { readonly number: number } & Span }
    | { readonly do: "flush ruleset"; readonly family?: "ip" | "ip6" }
    | { readonly do: "list"; readonly what: "ruleset" | "tables"; readonly family?: "ip" | "ip6" }
    | { readonly do: "list table"; readonly place: TableRef }
    | { readonly do: "list set"; readonly place: TableRef; readonly set: Named }
  );
