import type { LearnedEntry } from "@turnout/host/rules";
import { dropElement, findElement, putElement } from "./ruleset.ts";
import type { Table } from "./ruleset.ts";
import type { UndoLog } from "./undo-log.ts";

/** Put a key into a dynamic set or map, or delete it, because a packet says so; false when the set is full. */
export function learnKey(
  { sets }: Table,
  { set: name, key, value, does, timeoutMs: own }: LearnedEntry,
  nowMs: number,
  undo: UndoLog,
): boolean {
  const set = sets.get(name);
  if (set === undefined) return false;
  const found = findElement(set, key, nowMs);
  if (found !== undefined && does === "adds") return true;
  const stale = set.elements.get(key);
  if (stale !== undefined) dropElement(set, stale, undo);
  if (does === "deletes") return true;
  if (set.size !== undefined && set.elements.size >= set.size)
    for (const element of set.elements.values()) if (findElement(set, element.key, nowMs) === undefined) dropElement(set, element, undo);
  if (set.size !== undefined && set.elements.size >= set.size) return false;
  const timeoutMs = own ?? set.timeoutMs;
  const times = timeoutMs === undefined ? {} : { timeoutMs, expiresAtMs: nowMs + timeoutMs };
  // The kernel renews the time of what is there, not its data.
  putElement(set, { key, value: found?.value ?? value, comment: "", ...times }, undo);
  return true;
}
