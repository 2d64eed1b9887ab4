/** The tables in which a service proxy has chains. */
export type TableName = "filter" | "nat" | "mangle";

/** A chain that belongs to one row, or is always there: its rules, a line each, without `-A CHAIN`. Key: `nat KUBE-SVC-…`. */
export interface ChainObject {
  readonly kind: "chain";
  readonly key: string;
  readonly value: string;
}

/** One rule of a row in a shared chain, and how often it is there (once, as we make it). Key: `nat KUBE-SERVICES RULE`. */
export interface RuleObject {
  readonly kind: "rule";
  readonly key: string;
  readonly value: number;
}

/** That a shared chain is there, with the rules that come last in it, a line each. Key: `nat KUBE-SERVICES`. */
export interface SharedObject {
  readonly kind: "shared";
  readonly key: string;
  readonly value: string;
}

/** Our jumps in a chain of the kernel's, a line each, in their order. Key: `filter FORWARD`. */
export interface JumpsObject {
  readonly kind: "jumps";
  readonly key: string;
  readonly value: string;
}

/** What a service proxy keeps in iptables, as objects for the ledger. Rules are in the form in which `iptables-save` prints them. */
export type RulesObject = ChainObject | RuleObject | SharedObject | JumpsObject;

/** First line of an observed tail that isn't last in its chain. */
export const MISPLACED = "(not last)";

/** Where an object is: table, chain, and the rule for those that are one. */
export interface RuleLocation {
  readonly table: TableName;
  readonly chain: string;
  readonly rule: string;
}

/** Take a key of the form `TABLE CHAIN` or `TABLE CHAIN RULE` apart; `rule` is "" where there is none. */
export function placeOf({ key }: { readonly key: string }): RuleLocation {
  const [table = "", chain = ""] = key.split(" ", 2);
  return { table: table as TableName, chain, rule: key.slice(table.length + chain.length + 2) };
}

/** Take a value apart that is rules, a line each; empty when there are none. */
export function rulesOf(value: string): readonly string[] {
  return value === "" ? [] : value.split("\n");
}
