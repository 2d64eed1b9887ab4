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

/**
 * Take over from `before` what `after` has in equal form: whole when all is, else field by field. So what did not change stays the same object, which
 * is compared at a glance and need not be kept a second time.
 *
 * Shape: plain data; `after` is written to, so it must be the caller's own. Edges: without `before`, `after` as it is.
 */
export function withEqual<T extends object>(before: T | undefined, after: T): T {
  if (before === undefined) return after;
  const [old, made] = [before as Record<string, unknown>, after as Record<string, unknown>];
  let isWhole = true;
  for (const field in made) {
    // Also of texts, of which there would be two copies.
    if (isEqual(old[field], made[field])) made[field] = old[field];
    else isWhole = false;
  }
  if (!isWhole) return after;
  for (const field in old) if (old[field] !== undefined && made[field] === undefined) return after;
  return before;
}
