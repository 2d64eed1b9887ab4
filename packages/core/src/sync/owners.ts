/** Who owns an object: the key of the one row that does, or several keys with how often each lists it. */
export type Owners = string | Map<string, number>;

/** The skeleton's key among rows, which none of them has. */
export const SKELETON = "";

/** One owner more. A map that is given is changed. */
export function withOwner(owners: Owners | undefined, key: string): Owners {
  if (owners === undefined) return key;
  const several = typeof owners === "string" ? new Map([[owners, 1]]) : owners;
  return several.set(key, (several.get(key) ?? 0) + 1);
}

/** One owner less; undefined: nobody is left. A map that is given is changed. */
export function withoutOwner(owners: Owners | undefined, key: string): Owners | undefined {
  if (owners === undefined || typeof owners === "string") return owners === key ? undefined : owners;
  const count = owners.get(key) ?? 0;
  if (count > 1) owners.set(key, count - 1);
  else owners.delete(key);
  return owners.size === 0 ? undefined : owners;
}

/** How many owners there are; one that lists an object twice counts twice. */
export function ownerCount(owners: Owners | undefined): number {
  if (owners === undefined) return 0;
  return typeof owners === "string" ? 1 : [...owners.values()].reduce((sum, count) => sum + count, 0);
}

/** The rows among the owners. */
export function* rowsAmong(owners: Owners | undefined): Iterable<string> {
  if (owners === undefined) return;
  for (const key of typeof owners === "string" ? [owners] : owners.keys()) if (key !== SKELETON) yield key;
}
