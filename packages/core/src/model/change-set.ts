import type { ChangeSet, ServicePort } from "./rows.ts";

/** Apply a change set to rows; the result shares nothing that changed. */
export function applyChangeSet(rows: ReadonlyMap<string, ServicePort>, changes: ChangeSet): ReadonlyMap<string, ServicePort> {
  const next = new Map(changes.full ? [] : rows);
  for (const key of changes.delete) next.delete(key);
  for (const row of changes.set) next.set(row.key, row);
  return next;
}
