import type { NftElements, NftSetSpec } from "@turnout/host/nft-statement";
import { targetNamed } from "./references.ts";
import { kernelRefusal, Refusal } from "./refusal.ts";
import { dropElement, findElement, putElement, putNamed } from "./ruleset.ts";
import type { Element, NftSet, Table } from "./ruleset.ts";
import { isValue, typesOf } from "./types.ts";
import type { UndoLog } from "./undo-log.ts";

const FLAG_ORDER = ["constant", "interval", "timeout", "dynamic"];
const COMMENT_MAX = 128;

/** Make a set, or repeat what is there. @throws {Refusal} for a type nft doesn't know, and when another set has the name. */
export function addSet(spec: NftSetSpec, table: Table, mustBeNew: boolean, undo: UndoLog): void {
  const existing = table.sets.get(spec.name);
  const wanted = declared(spec);
  if (existing !== undefined) {
    if (mustBeNew || shapeOf(wanted) !== shapeOf(existing)) throw kernelRefusal("EEXIST");
    undo.noteRepetition();
    return;
  }
  putNamed(table.sets, spec.name, { ...wanted, handle: ++table.lastHandle }, undo);
}

function declared({ name, type = "", map, size, flags = [], timeout }: NftSetSpec): Omit<NftSet, "handle"> {
  const types = typesOf(type);
  const data = map === undefined || map === "verdict" ? map : typesOf(map);
  if (types === undefined || (map !== undefined && data === undefined)) throw new Refusal("unknown datatype");
  if (flags.includes("interval")) throw new Refusal("the fake has no intervals");
  const wanted = [...flags, ...(timeout === undefined ? [] : ["timeout"])];
  return {
    name,
    types,
    data,
    protocol: /"protocol":"(tcp|udp|sctp)"/.exec(JSON.stringify(map ?? ""))?.[1],
    flags: FLAG_ORDER.filter((flag) => wanted.includes(flag)),
    size,
    timeoutMs: timeout === undefined ? undefined : timeout * 1_000,
    elements: new Map(),
    targets: new Map(),
    uses: 0,
  };
}

/** What a declaration has to repeat to be taken for the same set. */
function shapeOf({ types, data, flags }: Omit<NftSet, "handle">): string {
  return `${types.join(" . ")} : ${typeof data === "object" ? data.join(" . ") : (data ?? "")} ${flags.toSorted().join(",")}`;
}

/** Carry out what is written about elements. @throws {Refusal}. */
export function executeElements({ verb, set: name, elements }: NftElements, table: Table, undo: UndoLog, nowMs: number): void {
  const set = table.sets.get(name);
  if (set === undefined) throw new Refusal("No such file or directory");
  for (const { key: start, place, value, comment } of elements) {
    const key = place === undefined ? start : `${start} . ${place}`;
    if (!isOfTypes(set.types, key)) throw new Refusal("datatype mismatch");
    const existing = liveElement(set, key, nowMs, undo);
    if (verb === "delete") {
      if (existing === undefined) throw kernelRefusal("ENOENT");
      dropElement(set, existing, undo);
      continue;
    }
    if (comment.length > COMMENT_MAX) throw new Refusal("Comment too long: 128 characters maximum allowed");
    const times = set.timeoutMs === undefined ? {} : { expiresAtMs: nowMs + set.timeoutMs };
    const element: Element = { key, value, comment, ...times, ...targetOf(set, value, table) };
    if (existing !== undefined) {
      if (existing.value !== value) throw kernelRefusal("EEXIST");
      continue;
    }
    if (set.size !== undefined && set.elements.size >= set.size) throw kernelRefusal("ENFILE");
    putElement(set, element, undo);
  }
}

function isOfTypes(types: readonly string[], text: string): boolean {
  const parts = text.split(" . ");
  return parts.length === types.length && parts.every((part, index) => isValue(types[index] ?? "", part));
}

function targetOf({ data }: NftSet, value: string, table: Table): Pick<Element, "chain"> {
  if (data === undefined ? value !== "" : value === "") throw kernelRefusal("EINVAL");
  if (data !== undefined && data !== "verdict" && !isOfTypes(data, value)) throw new Refusal("datatype mismatch");
  const [, target] = data === "verdict" ? value.split(" ") : [];
  return target === undefined ? {} : { chain: targetNamed(table, target) };
}

/** The element under a key; one that has timed out is swept away first. */
function liveElement(set: NftSet, key: string, nowMs: number, undo: UndoLog): Element | undefined {
  const stale = set.elements.get(key);
  const element = findElement(set, key, nowMs);
  if (stale !== undefined && element === undefined) dropElement(set, stale, undo);
  return element;
}
