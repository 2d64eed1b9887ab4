import type { LearnedEntry } from "@turnout/host/rules";
import { dropElement, findElement, putElement } from "./ruleset.ts";
import type { Table } from "./ruleset.ts";
import type { UndoLog } from "./undo-log.ts";

/** Put a key into a dynamic set, because a packet says so; false when the set is full. */
export function learnKey(
  { sets }: Table,
  { set: name, key, isRenewing, timeoutMs: own }: LearnedEntry,
  nowMs: number,
  undo: UndoLog,
): boolean {
  const set = sets.get(name);
  if (set === undefined) return false;
  if (findElement(set, key, nowMs) !== undefined && !isRenewing) return true;
  const stale = set.elements.get(key);
  if (stale !== undefined) dropElement(set, stale, undo);
  if (set.size !== undefined && set.elements.size >= set.size)
    for (const element of set.elements.values()) if (findElement(set, element.key, nowMs) === undefined) dropElement(set, element, undo);
  if (set.size !== undefined && set.elements.size >= set.size) return false;
  const timeoutMs = own ?? set.timeoutMs;
  const times = timeoutMs === undefined ? {} : { timeoutMs, expiresAtMs: nowMs + timeoutMs };
  putElement(set, { key, value: "", comment: "", ...times }, undo);
  return true;
}
