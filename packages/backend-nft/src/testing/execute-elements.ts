import { declareSet } from "./declare-set.ts";
import { readElements } from "./read-elements.ts";
import { kernelRefusal, Refusal } from "./refusal.ts";
import { dropElement, putElement, putNamed } from "./ruleset.ts";
import type { Element, NftSet, Table, UndoLog } from "./ruleset.ts";
import type { Command, ElementSyntax, Named } from "./syntax.ts";

type SetCommand = Extract<Command, { do: "add set" | "delete set" | "flush set" | "add element" | "delete element" }>;

/** Carry out a command on sets, maps or their elements. @throws {Refusal}. */
export function executeElements(command: SetCommand, table: Table, undo: UndoLog, nowMs: number): void {
  if (command.do === "add set") return addSet(command, table, undo, nowMs);
  const set = setOf(command, table);
  switch (command.do) {
    case "delete set":
      if (set.uses > 0) throw kernelRefusal("EBUSY", command.set);
      for (const element of set.elements.values()) dropElement(set, element, undo);
      putNamed(table.sets, set.name, undefined, undo);
      return;
    case "flush set":
      for (const element of set.elements.values()) dropElement(set, element, undo);
      return;
    case "add element":
      return addElements(command.elements, set, { table, undo, nowMs, mustBeNew: command.mustBeNew });
    case "delete element":
      return deleteElements(command.elements, set, { table, undo, nowMs });
  }
}

function setOf(command: Exclude<SetCommand, { do: "add set" }>, table: Table): NftSet {
  const set = table.sets.get(command.set.name);
  // Deletions are left to the kernel, the rest is looked up by nft.
  if (set === undefined)
    throw command.do === "delete set" ? kernelRefusal("ENOENT", command.set) : new Refusal("No such file or directory", command.set);
  return set;
}

function addSet(command: Extract<Command, { do: "add set" }>, table: Table, undo: UndoLog, nowMs: number): void {
  const { set: named, body, mustBeNew } = command;
  const existing = table.sets.get(named.name);
  const set = existing ?? declareSet(command, table);
  if (existing !== undefined) {
    if (mustBeNew) throw kernelRefusal("EEXIST", named);
    const wanted = declareSet(command, table);
    if (shapeOf(wanted) !== shapeOf(existing)) throw kernelRefusal("EEXIST", named);
  } else {
    putNamed(table.sets, named.name, set, undo);
  }
  addElements(body.elements, set, { table, undo, nowMs, mustBeNew: false });
}

/** What a declaration has to repeat to be taken for the same set. */
function shapeOf({ types, data, flags }: NftSet): string {
  const names = (of: NftSet["types"]): string => of.map(({ name }) => name).join(" . ");
  return `${names(types)} : ${typeof data === "object" ? names(data) : (data ?? "")} ${flags.toSorted().join(",")}`;
}

interface ElementContext {
  readonly table: Table;
  readonly undo: UndoLog;
  readonly nowMs: number;
  readonly mustBeNew?: boolean;
}

function addElements(syntaxes: readonly ElementSyntax[], set: NftSet, { table, undo, nowMs, mustBeNew = false }: ElementContext): void {
  const elements = readElements(syntaxes, set, table, nowMs);
  for (const [index, element] of elements.entries()) {
    const span = syntaxes[index] as ElementSyntax & Named;
    if (set.data !== undefined && element.data === undefined) throw kernelRefusal("EINVAL", span);
    const existing = liveElement(set, element.key, nowMs, undo);
    if (existing !== undefined) {
      if (mustBeNew || !isSameData(existing.data, element.data)) throw kernelRefusal("EEXIST", span);
      continue;
    }
    if (overlaps(set, element)) throw new Refusal("interval overlaps with an existing one", span);
    if (set.size !== undefined && set.elements.size >= set.size) throw kernelRefusal("ENFILE", span);
    putElement(set, element, undo);
  }
}

function deleteElements(syntaxes: readonly ElementSyntax[], set: NftSet, { table, undo, nowMs }: ElementContext): void {
  const elements = readElements(syntaxes, set, table, nowMs);
  for (const [index, { key }] of elements.entries()) {
    const existing = liveElement(set, key, nowMs, undo);
    if (existing === undefined) throw kernelRefusal("ENOENT", syntaxes[index] as ElementSyntax);
    dropElement(set, existing, undo);
  }
}

/** The element under a key; one that has timed out is swept away first. */
function liveElement(set: NftSet, key: string, nowMs: number, undo: UndoLog): Element | undefined {
  const element = set.elements.get(key);
  if (element?.expiresAtMs === undefined || element.expiresAtMs > nowMs) return element;
  dropElement(set, element, undo);
  return undefined;
}

function isSameData(a: Element["data"], b: Element["data"]): boolean {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  return a.verdict === b.verdict && a.chain === b.chain;
}

function overlaps(set: NftSet, { interval }: Element): boolean {
  if (interval === undefined) return false;
  for (const { interval: other } of set.elements.values()) {
    if (other !== undefined && interval.from <= other.to && other.from <= interval.to) return true;
  }
  return false;
}
