import { isEqual } from "./equal.ts";
import type { ChangeSet, ServicePort } from "./rows.ts";

/** Apply a change set to rows; the result shares nothing that changed. */
export function applyChangeSet(rows: ReadonlyMap<string, ServicePort>, changes: ChangeSet): ReadonlyMap<string, ServicePort> {
  const next = new Map(changes.full ? [] : rows);
  for (const key of changes.delete) next.delete(key);
  for (const row of changes.set) next.set(row.key, row);
  return next;
}

/** What must be set and deleted to get from one set of rows to another. */
export function rowDifference(
  from: ReadonlyMap<string, ServicePort>,
  to: ReadonlyMap<string, ServicePort>,
): Pick<ChangeSet, "set" | "delete"> {
  const set = [...to.values()].filter((row) => !isEqual(from.get(row.key), row));
  return { set, delete: [...from.keys()].filter((key) => !to.has(key)) };
}
