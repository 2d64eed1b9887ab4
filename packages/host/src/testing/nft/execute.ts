import { executeElements } from "./execute-elements.ts";
import { compileRule } from "./compile-rule.ts";
import { chainOf } from "./read-elements.ts";
import { kernelRefusal, Refusal } from "./refusal.ts";
import { putNamed, putRules } from "./ruleset.ts";
import type { BaseHook, Chain, Rule, Ruleset, Table } from "./ruleset.ts";
import type { Hook } from "./hooks.ts";
import type { UndoLog } from "./undo-log.ts";
import type { Command, HookSyntax, TableRef } from "./syntax.ts";

/** Longest name in bytes. */
const NAME_BYTES_MAX = 255;
const HOOKS: Readonly<Record<BaseHook["type"], readonly Hook[]>> = {
  filter: ["prerouting", "input", "forward", "output", "postrouting"],
  nat: ["prerouting", "input", "output", "postrouting"],
  route: ["output"],
};
/** Nat chains come after conntrack. */
const NAT_PRIORITY_MIN = -200;

/** What one transaction works on. */
export interface Transaction {
  readonly ruleset: Ruleset;
  readonly undo: UndoLog;
  readonly nowMs: number;
  /** Tables that were changed. */
  readonly touched: Set<Table>;
  /** Tables in which packets may take ways they could not take before. */
  readonly rerouted: Set<Table>;
}

/** Carry out one command that changes something. @throws {Refusal} when nft or the kernel refuses it; what was done before it is in `undo`. */
export function execute(command: Exclude<Command, { do: "list" | "list table" | "list set" }>, transaction: Transaction): void {
  const { ruleset, undo, touched, nowMs } = transaction;
  if (command.do === "flush ruleset") {
    for (const table of ruleset.tables.values())
      if (command.family === undefined || table.family === command.family) dropTable(table, transaction);
    return;
  }
  if (command.do === "add table") return addTable(command, transaction);
  const table = tableOf(command.place, ruleset, command);
  touched.add(table);
  switch (command.do) {
    case "delete table":
      return dropTable(table, transaction);
    case "flush table":
      for (const chain of table.chains.values()) putRules(chain, [], undo);
      return;
    case "add chain":
      return addChain(command, table, transaction);
    case "delete chain":
      return deleteChain(chainOf(table, command.chain), command.chain, table, undo);
    case "flush chain": {
      const chain = chainOf(table, command.chain);
      if (chain.rules.length > 0) putRules(chain, [], undo);
      return;
    }
    case "add rule":
      transaction.rerouted.add(table);
      return addRule(command, table, transaction);
    case "delete rule": {
      const chain = chainOf(table, command.chain);
      ruleAt(chain, command.handle);
      putRules(
        chain,
        chain.rules.filter(({ handle }) => handle !== command.handle.number),
        undo,
      );
      return;
    }
    default:
      executeElements(command, table, undo, nowMs);
      if (command.do.startsWith("add") && table.sets.get(command.set.name)?.data === "verdict") transaction.rerouted.add(table);
  }
}

/** Find the table a command is about. @throws {Refusal}. */
export function tableOf({ family, table }: TableRef, ruleset: Ruleset, command: Pick<Command, "do">): Table {
  const found = ruleset.table(family, table.name);
  if (found !== undefined) return found;
  // What nft itself looks up (rules and elements) and what it leaves to the kernel have different words.
  const isLookedUp = /rule|chain|element|set/.test(command.do) && !command.do.startsWith("delete chain");
  throw isLookedUp ? new Refusal("No such file or directory", table) : kernelRefusal("ENOENT", table);
}

function checkName({ name, ...span }: { readonly name: string; readonly start: number; readonly end: number }): void {
  if (name.length > NAME_BYTES_MAX) throw kernelRefusal("ERANGE", span);
}

function addTable({ place, mustBeNew, comment }: Extract<Command, { do: "add table" }>, { ruleset, undo, touched }: Transaction): void {
  const { family, table: named } = place;
  checkName(named);
  const existing = ruleset.table(family, named.name);
  if (existing !== undefined) {
    if (mustBeNew) throw kernelRefusal("EEXIST", named);
    return;
  }
  const table: Table = {
    family,
    name: named.name,
    handle: ++ruleset.lastHandle,
    comment,
    chains: new Map(),
    sets: new Map(),
    lastHandle: 0,
  };
  putNamed(ruleset.tables, `${family} ${named.name}`, table, undo);
  touched.add(table);
}

function dropTable(table: Table, { ruleset, undo, touched }: Transaction): void {
  putNamed(ruleset.tables, `${table.family} ${table.name}`, undefined, undo);
  touched.add(table);
}

function addChain(command: Extract<Command, { do: "add chain" }>, table: Table, { undo }: Transaction): void {
  const { chain: named, hook, policy, mustBeNew, comment } = command;
  checkName(named);
  const base = hook === undefined ? undefined : baseHook(hook);
  const existing = table.chains.get(named.name);
  if (existing !== undefined) {
    if (mustBeNew) throw kernelRefusal("EEXIST", named);
    return updateChain(existing, base, command, undo);
  }
  if (policy !== undefined && base === undefined) throw kernelRefusal("EOPNOTSUPP", named);
  if (policy === "drop" && base?.type === "nat") throw kernelRefusal("EOPNOTSUPP", named);
  const chain: Chain = { name: named.name, handle: ++table.lastHandle, comment, base, policy: policy ?? "accept", rules: [], uses: 0 };
  putNamed(table.chains, named.name, chain, undo);
}

function updateChain(existing: Chain, base: BaseHook | undefined, command: Extract<Command, { do: "add chain" }>, undo: UndoLog): void {
  const { chain: named, policy } = command;
  const was = existing.base;
  undo.noteRepetition();
  if (base !== undefined) {
    if (was === undefined) throw kernelRefusal("EEXIST", named);
    if (was.hook !== base.hook || was.priority !== base.priority) throw kernelRefusal("EOPNOTSUPP", command);
    if (was.type !== base.type) throw kernelRefusal("EEXIST", named);
  }
  if (policy === undefined || policy === existing.policy) return;
  if (was === undefined || was.type === "nat") throw kernelRefusal("EOPNOTSUPP", named);
  const before = existing.policy;
  existing.policy = policy;
  undo.add(() => (existing.policy = before));
}

function baseHook({ type, hook, priority, ...span }: HookSyntax): BaseHook {
  const hooks = HOOKS[type as BaseHook["type"]];
  if (hooks === undefined) throw new Refusal(`unknown chain type ${type}`, span);
  const known = HOOKS.filter.find((name) => name === hook.name);
  if (known === undefined) throw new Refusal("unknown chain hook", hook);
  if (!hooks.includes(known)) throw kernelRefusal("EOPNOTSUPP", span);
  if (type === "nat" && priority <= NAT_PRIORITY_MIN) throw kernelRefusal("EOPNOTSUPP", span);
  return { type: type as BaseHook["type"], hook: known, priority };
}

function deleteChain(chain: Chain, named: { readonly start: number; readonly end: number }, table: Table, undo: UndoLog): void {
  // Counted before its own rules go: one that leads to itself is in use.
  if (chain.uses > 0) throw kernelRefusal("EBUSY", named);
  putRules(chain, [], undo);
  putNamed(table.chains, chain.name, undefined, undo);
}

function addRule(command: Extract<Command, { do: "add rule" }>, table: Table, { undo, nowMs }: Transaction): void {
  const { where, handle, rule: syntax } = command;
  const { rule: compiled, refusal } = compileRule(syntax, table, nowMs);
  const chain = chainOf(table, command.chain);
  const at = handle === undefined ? undefined : ruleAt(chain, handle);
  if (refusal !== undefined) throw refusal;
  // One that replaces another takes its handle, too.
  const rule = { ...compiled, handle: where === "replace" && at !== undefined ? at.handle : ++table.lastHandle };
  const before = chain.rules;
  const index = at === undefined ? 0 : before.indexOf(at);
  const rules = {
    end: () => [...before, rule],
    start: () => [rule, ...before],
    after: () => before.toSpliced(index + 1, 0, rule),
    before: () => before.toSpliced(index, 0, rule),
    replace: () => before.with(index, rule),
  }[where]();
  putRules(chain, rules, undo);
}

function ruleAt(chain: Chain, { number, ...span }: { readonly number: number; readonly start: number; readonly end: number }): Rule {
  const rule = chain.rules.find(({ handle }) => handle === number);
  if (rule === undefined) throw kernelRefusal("ENOENT", span);
  return rule;
}
