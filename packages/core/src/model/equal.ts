/**
 * Compare two pieces of plain data by value.
 *
 * Edges: an absent field and one that is undefined are the same; functions and class instances do not belong here.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) return Array.isArray(b) && sameItems(a, b);
  return !Array.isArray(b) && sameFields(a as Record<string, unknown>, b as Record<string, unknown>);
}

function sameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (!isEqual(a[index], b[index])) return false;
  return true;
}

function sameFields(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  for (const field in a) if (!isEqual(a[field], b[field])) return false;
  for (const field in b) if (b[field] !== undefined && a[field] === undefined) return false;
  return true;
}
