import { readNftRule } from "@turnout/host/nft";
import { isElements, printRule } from "@turnout/host/nft-statement";
import type { NftStatement, NftChainSpec, NftRuleSpec, NftRuleStatement, NftSubject } from "@turnout/host/nft-statement";
import { addSet, executeElements } from "./execute-elements.ts";
import { referencesOf } from "./references.ts";
import { kernelRefusal, Refusal } from "./refusal.ts";
import { dropElement, namedSetsOf, putNamed, putRules } from "./ruleset.ts";
import type { BaseHook, Chain, Rule, Ruleset, Table } from "./ruleset.ts";
import type { UndoLog } from "./undo-log.ts";

const NAME_BYTES_MAX = 255;
/** nft refuses longer comments itself. */
const COMMENT_MAX = 128;
/** Where each type of chain may be called in. */
const HOOKS: Readonly<Record<string, readonly string[]>> = {
  filter: ["prerouting", "input", "forward", "output", "postrouting"],
  nat: ["prerouting", "input", "output", "postrouting"],
  route: ["output"],
};
/** Conntrack translates at -200, so nat chains come later. */
const NAT_PRIORITY_MIN = -200;

/** What commands of one transaction share. */
export interface Transaction {
  readonly ruleset: Ruleset;
  readonly undo: UndoLog;
  readonly nowMs: () => number;
  /** Tables that were changed. */
  readonly touched: Set<Table>;
  /** Tables in which packets may take ways they could not take before. */
  readonly rerouted: Set<Table>;
}

/** Carry out one part of a transaction. @throws {Refusal} when nft or the kernel refuses it; what was done before it is in `undo`. */
export function execute(statement: NftStatement, transaction: Transaction): void {
  const { undo, nowMs, rerouted } = transaction;
  if (isElements(statement)) {
    const table = tableOf(statement.family, statement.table, transaction);
    executeElements(statement, table, undo, nowMs());
    if (statement.verb === "add" && table.sets.get(statement.set)?.data === "verdict") rerouted.add(table);
    return;
  }
  const [verb, subject] = Object.entries(statement)[0] as [Verb, NftSubject | { readonly ruleset: null }];
  if ("ruleset" in subject) {
    for (const table of transaction.ruleset.tables.values()) dropTable(table, transaction);
    return;
  }
  if ("table" in subject) return executeTable(verb, subject.table, transaction);
  const { family, table: name } = Object.values(subject)[0] as NftRuleSpec;
  const table = tableOf(family, name, transaction);
  if ("chain" in subject) executeChain(verb, subject.chain, table, undo);
  else if ("rule" in subject) {
    executeRule(verb, subject.rule, table, transaction);
    if (verb !== "delete") rerouted.add(table);
  } else executeSet(verb, "set" in subject ? subject.set : subject.map, table, undo);
}

type Verb = "add" | "create" | "insert" | "replace" | "delete" | "flush";

function tableOf(family: string, name: string, { ruleset, touched }: Transaction): Table {
  const table = ruleset.tables.get(`${family} ${name}`);
  if (table === undefined) throw kernelRefusal("ENOENT");
  touched.add(table);
  return table;
}

function checkName(name: string): void {
  if (name.length > NAME_BYTES_MAX) throw kernelRefusal("ERANGE");
}

function executeTable(verb: Verb, { family, name }: { readonly family: string; readonly name: string }, transaction: Transaction): void {
  const { ruleset, undo, touched } = transaction;
  if (verb === "delete") return dropTable(tableOf(family, name, transaction), transaction);
  if (verb === "flush") {
    for (const chain of tableOf(family, name, transaction).chains.values()) putRules(chain, [], undo);
    return;
  }
  checkName(name);
  if (family !== "ip" && family !== "ip6") throw new Refusal("the fake has no other families than ip and ip6");
  const id = `${family} ${name}`;
  if (ruleset.tables.has(id)) {
    if (verb === "create") throw kernelRefusal("EEXIST");
    return;
  }
  const handle = ++ruleset.lastHandle;
  const table: Table = { family, name, tool: "nft", place: id, handle, chains: new Map(), sets: new Map(), lastHandle: 0 };
  putNamed(ruleset.tables, id, table, undo);
  touched.add(table);
}

function dropTable(table: Table, { ruleset, undo, touched }: Transaction): void {
  putNamed(ruleset.tables, table.place, undefined, undo);
  touched.add(table);
}

function executeSet(verb: Verb, spec: Parameters<typeof addSet>[0], table: Table, undo: UndoLog): void {
  checkName(spec.name);
  if (verb !== "delete" && verb !== "flush") return addSet(spec, table, verb === "create", undo);
  const set = table.sets.get(spec.name);
  if (set === undefined) throw kernelRefusal("ENOENT");
  if (verb === "delete" && set.uses > 0) throw kernelRefusal("EBUSY");
  for (const element of set.elements.values()) dropElement(set, element, undo);
  if (verb === "delete") putNamed(table.sets, set.name, undefined, undo);
}

function executeChain(verb: Verb, spec: NftChainSpec, table: Table, undo: UndoLog): void {
  if (verb === "delete") {
    const chain = chainOf(table, spec.name);
    // Counted before its own rules go: one that leads to itself is in use.
    if (chain.uses > 0) throw kernelRefusal("EBUSY");
    putRules(chain, [], undo);
    return putNamed(table.chains, chain.name, undefined, undo);
  }
  if (verb === "flush") {
    const chain = chainOf(table, spec.name);
    if (chain.rules.length > 0) putRules(chain, [], undo);
    return;
  }
  checkName(spec.name);
  const hook = baseHook(spec);
  const existing = table.chains.get(spec.name);
  if (existing !== undefined) {
    if (verb === "create") throw kernelRefusal("EEXIST");
    return updateChain(existing, hook, spec, undo);
  }
  if (spec.policy !== undefined && (hook === undefined || (spec.policy === "drop" && hook.type === "nat")))
    throw kernelRefusal("EOPNOTSUPP");
  const handle = ++table.lastHandle;
  putNamed(table.chains, spec.name, { name: spec.name, handle, ...(hook === undefined ? {} : { hook }), rules: [], uses: 0 }, undo);
}

function updateChain({ hook: was }: Chain, hook: BaseHook | undefined, { policy }: NftChainSpec, undo: UndoLog): void {
  undo.noteRepetition();
  if (hook !== undefined) {
    if (was === undefined || was.type !== hook.type) throw kernelRefusal("EEXIST");
    if (was.at !== hook.at || was.priority !== hook.priority) throw kernelRefusal("EOPNOTSUPP");
  }
  if (policy === undefined || policy === was?.policy) return;
  if (was === undefined || was.type === "nat") throw kernelRefusal("EOPNOTSUPP");
  const before = was.policy;
  was.policy = policy;
  undo.add(() => (was.policy = before));
}

function baseHook({ type = "", hook, prio = 0, policy = "accept" }: NftChainSpec): BaseHook | undefined {
  if (hook === undefined) return undefined;
  const hooks = HOOKS[type];
  if (hooks === undefined || HOOKS["filter"]?.includes(hook) !== true) throw new Refusal("unknown chain type or hook");
  if (!hooks.includes(hook) || (type === "nat" && prio <= NAT_PRIORITY_MIN)) throw kernelRefusal("EOPNOTSUPP");
  return { type, at: hook, priority: prio, policy };
}

function chainOf({ chains }: Table, name: string): Chain {
  const chain = chains.get(name);
  if (chain === undefined) throw kernelRefusal("ENOENT");
  return chain;
}

/** What the kernel gives a set that packets write into, and that says no size. It keeps it, also where the transaction fails. */
const WRITTEN_SIZE = 65_535;

function setSize(statement: NftRuleStatement, { sets }: Table): void {
  const name = "set" in statement ? statement.set.set : "map" in statement ? statement.map.map : "";
  const set = sets.get(name.slice(1));
  if (set !== undefined) set.size ??= WRITTEN_SIZE;
}

function executeRule(verb: Verb, spec: NftRuleSpec, table: Table, { undo, nowMs }: Transaction): void {
  const chain = chainOf(table, spec.chain);
  const at = spec.handle === undefined ? undefined : chain.rules.find(({ handle }) => handle === spec.handle);
  if (at === undefined && (spec.handle !== undefined || verb === "delete" || verb === "replace")) throw kernelRefusal("ENOENT");
  const before = chain.rules;
  const index = at === undefined ? (verb === "insert" ? 0 : before.length) : before.indexOf(at);
  if (verb === "delete") return putRules(chain, before.toSpliced(index, 1), undo);
  const { expr = [], comment } = spec;
  if ((comment ?? "").length > COMMENT_MAX) throw new Refusal("Comment too long: 128 characters maximum allowed");
  // One that replaces another takes its handle, too.
  const rule: Rule = {
    handle: verb === "replace" && at !== undefined ? at.handle : ++table.lastHandle,
    comment,
    expr,
    ...referencesOf(expr, table),
    ...readNftRule(expr, namedSetsOf(table, nowMs)),
    text: printRule(expr),
    deletion: "",
  };
  for (const statement of expr) setSize(statement, table);
  const from = verb === "add" && at !== undefined ? index + 1 : index;
  putRules(chain, before.toSpliced(from, verb === "replace" ? 1 : 0, rule), undo);
}
