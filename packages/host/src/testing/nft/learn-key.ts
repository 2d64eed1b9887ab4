import { jsonOfKey } from "./data-types.ts";
import { dropElement, findElement, putElement } from "./ruleset.ts";
import type { NftSet } from "./ruleset.ts";
import type { Walk } from "./walk.ts";

/** How a rule adds to a dynamic set. */
export interface Learning {
  /** Whether an entry that is there gets a new time. */
  readonly isRenewing: boolean;
  readonly timeoutMs?: number;
}

/** Put a key into a dynamic set, because a packet says so; false when the set is full. */
export function learnKey(walk: Walk, set: NftSet, key: string, { isRenewing, timeoutMs = set.timeoutMs }: Learning): boolean {
  const existing = findElement(set, key, walk.nowMs);
  if (existing !== undefined && !isRenewing) return true;
  const stale = set.elements.get(key);
  if (stale !== undefined) dropElement(set, stale, walk.undo);
  if (set.size !== undefined && set.elements.size >= set.size) sweep(walk, set);
  if (set.size !== undefined && set.elements.size >= set.size) return false;
  const times = timeoutMs === undefined ? {} : { timeoutMs, expiresAtMs: walk.nowMs + timeoutMs };
  putElement(set, { key, json: jsonOfKey(set.types, key), ...times }, walk.undo);
  return true;
}

function sweep(walk: Walk, set: NftSet): void {
  for (const element of set.elements.values()) {
    if (element.expiresAtMs !== undefined && element.expiresAtMs <= walk.nowMs) dropElement(set, element, walk.undo);
  }
}
