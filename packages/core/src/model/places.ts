/** A place of a list at which nothing lies. */
const VACANT = "";

/**
 * Lay a list out so that what another list has, too, stays at its place there, and the rest fills the gaps. Pure.
 *
 * Shape: for lists of which any place is as good as any other. The result has what `wanted` has, and is vacant ("") where that is. Of a list that lost
 * one entry one place changes: the last entry moves into the gap.
 * Edges: entries are distinct. Where nothing moves the result is `wanted` itself.
 */
export function keepPlaces(wanted: readonly string[], held: readonly string[]): readonly string[] {
  if (wanted.every((entry, place) => entry === held[place])) return wanted;
  const left = new Set(wanted);
  left.delete(VACANT);
  const kept = wanted.map((entry, place) => {
    const before = held[place];
    return entry !== VACANT && before !== undefined && left.delete(before) ? before : VACANT;
  });
  const rest = left.values();
  return kept.map((entry, place) => (entry === VACANT && wanted[place] !== VACANT ? (rest.next().value ?? VACANT) : entry));
}
