/**
 * nft's own syntax tree, as its JSON has it: what rules and commands are written in here, and what `nft -j list` prints.
 *
 * @source libnftables-json(5)
 */

/** What a rule may ask of a packet, and what that is compared with. */
export type NftExpression =
  | string
  | number
  | { readonly payload: { readonly protocol: string; readonly field: string } }
  | { readonly meta: { readonly key: string } }
  | { readonly ct: { readonly key: string; readonly dir?: "original" | "reply" } }
  | { readonly fib: { readonly result: string; readonly flags: readonly string[] } }
  | { readonly numgen: { readonly mode: "random" | "inc"; readonly mod: number; readonly offset?: number } }
  | { readonly concat: readonly NftExpression[] }
  | { readonly "&": readonly [NftExpression, NftExpression] }
  | { readonly "|": readonly [NftExpression, NftExpression] }
  | { readonly "^": readonly [NftExpression, NftExpression] }
  | { readonly prefix: { readonly addr: string; readonly len: number } }
  | { readonly range: readonly [NftExpression, NftExpression] }
  /** A set that is written out; pairs are those of a map. */
  | { readonly set: readonly (NftExpression | readonly [NftExpression, NftExpression | NftVerdict])[] }
  | { readonly map: { readonly key: NftExpression; readonly data: NftExpression } }
  | { readonly elem: { readonly val: NftExpression; readonly timeout?: number } };

/** Where a packet goes next. */
export type NftVerdict =
  | { readonly accept: null }
  | { readonly drop: null }
  | { readonly continue: null }
  | { readonly return: null }
  | { readonly jump: { readonly target: string } }
  | { readonly goto: { readonly target: string } };

/** What an address becomes. */
export interface NftNat {
  readonly family?: "ip" | "ip6";
  readonly addr?: NftExpression;
  readonly port?: NftExpression;
  readonly flags?: string | readonly string[];
}

/** One statement of a rule. */
export type NftRuleStatement =
  | NftVerdict
  /** `in`: any of the bits: what nft assumes without an operator. */
  | { readonly match: { readonly op: string; readonly left: NftExpression; readonly right: NftExpression } }
  | { readonly vmap: { readonly key: NftExpression; readonly data: NftExpression } }
  | { readonly mangle: { readonly key: NftExpression; readonly value: NftExpression } }
  | { readonly dnat: NftNat }
  | { readonly snat: NftNat }
  | { readonly masquerade: NftNat | null }
  | { readonly redirect: NftNat | null }
  | { readonly reject: { readonly type: string; readonly expr?: string } | null }
  | { readonly counter: { readonly packets: number; readonly bytes: number } | null }
  | {
      readonly set: {
        readonly op: "add" | "update";
        readonly elem: NftExpression;
        readonly set: string;
        readonly stmt?: readonly NftRuleStatement[];
      };
    }
  /** What a packet writes into a map. One that deletes names data, too, and deletes whatever there is under the key. */
  | {
      readonly map: {
        readonly op: "add" | "update" | "delete";
        readonly elem: NftExpression;
        readonly data: NftExpression;
        readonly map: string;
      };
    };

/** nft's families that are used here. */
export type NftFamily = "ip" | "ip6" | "inet";

/** Names something in a table. */
interface InTable {
  readonly family: NftFamily;
  readonly table: string;
}

/** A rule; `handle` says which one, or after (before) which one it comes. */
export interface NftRuleSpec extends InTable {
  readonly chain: string;
  readonly handle?: number;
  readonly expr?: readonly NftRuleStatement[];
  readonly comment?: string;
}

/** A chain; with a hook the kernel calls it in. */
export interface NftChainSpec extends InTable {
  readonly name: string;
  readonly type?: string;
  readonly hook?: string;
  readonly prio?: number;
  readonly policy?: "accept" | "drop";
}

/** The type of a key or of data: by name, or like that of an expression (`typeof`). */
export type NftTypeSpec = string | readonly string[] | { readonly typeof: NftExpression };

/** A set, or a map: `map` is the type of its data. */
export interface NftSetSpec extends InTable {
  readonly name: string;
  readonly type?: NftTypeSpec;
  readonly map?: NftTypeSpec;
  readonly size?: number;
  readonly flags?: readonly string[];
  /** In seconds. */
  readonly timeout?: number;
}

/** What a command is about. */
export type NftSubject =
  | { readonly table: { readonly family: NftFamily; readonly name: string } }
  | { readonly chain: NftChainSpec }
  | { readonly rule: NftRuleSpec }
  | { readonly set: NftSetSpec }
  | { readonly map: NftSetSpec };

/** One command of a transaction, but for those about elements. */
export type NftCommand =
  | { readonly add: NftSubject }
  | { readonly create: NftSubject }
  | { readonly insert: { readonly rule: NftRuleSpec } }
  | { readonly replace: { readonly rule: NftRuleSpec } }
  | { readonly delete: NftSubject }
  | { readonly flush: NftSubject | { readonly ruleset: null } };
