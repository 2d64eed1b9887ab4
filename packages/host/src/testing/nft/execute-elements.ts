import { declareSet } from "./declare-set.ts";
import { readElements } from "./read-elements.ts";
import { kernelRefusal, Refusal } from "./refusal.ts";
import { dropElement, isSameData, overlaps, putElement, putNamed } from "./ruleset.ts";
import type { Element, NftSet, Table } from "./ruleset.ts";
import type { UndoLog } from "./undo-log.ts";
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
  const wanted = declareSet(command, table);
  if (existing !== undefined && (mustBeNew || shapeOf(wanted) !== shapeOf(existing))) throw kernelRefusal("EEXIST", named);
  const set = existing ?? { ...wanted, handle: ++table.lastHandle };
  if (existing === undefined) putNamed(table.sets, named.name, set, undo);
  else undo.noteRepetition();
  addElements(body.elements, set, { table, undo, nowMs, mustBeNew: false });
}

/** What a declaration has to repeat to be taken for the same set. */
function shapeOf({ types, data, flags }: Omit<NftSet, "handle">): string {
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
    if (overlaps(set, element)) throw kernelRefusal("EEXIST", span);
    if (set.size !== undefined && set.elements.size >= set.size) throw kernelRefusal("ENFILE", span);
    putElement(set, element, undo);
  }
}

function deleteElements(syntaxes: readonly ElementSyntax[], set: NftSet, { table, undo, nowMs }: ElementContext): void {
  const elements = readElements(syntaxes.map(withoutVerdict), set, table, nowMs);
  for (const [index, { key }] of elements.entries()) {
    const existing = liveElement(set, key, nowMs, undo);
    const span = syntaxes[index] as ElementSyntax;
    // nft looks intervals up itself.
    if (existing === undefined)
      throw set.flags.includes("interval") ? new Refusal("element does not exist", span) : kernelRefusal("ENOENT", span);
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

/** Where an element leads, and for how long, doesn't matter to its deletion. */
function withoutVerdict({ key, data, start, end }: ElementSyntax): ElementSyntax {
  return { key, start, end, ...(data === undefined || data.is === "verdict" ? {} : { data }) };
}
