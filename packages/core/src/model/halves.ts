/** What {@link tryInHalves} needs to do. */
export interface HalvesActions<T> {
  /** Do it for all of these at once. @throws why that can't be done. */
  attempt(some: readonly T[]): Promise<void>;
  /** Hear of a failure, and undo what is left of it. False: fewer would fail too, so all of these are refused. A throw ends everything. */
  onFailure(error: unknown, some: readonly T[]): boolean | void;
}

/**
 * Do something for as many items as possible at once, and in halves where that fails; returns the items that are refused, with the reasons.
 *
 * Shape: in the order of the items. One bad item among n costs about 2 log2(n) attempts.
 */
export async function tryInHalves<T>(items: readonly T[], { attempt, onFailure }: HalvesActions<T>): Promise<ReadonlyMap<T, unknown>> {
  const refused = new Map<T, unknown>();
  const waiting: (readonly T[])[] = items.length === 0 ? [] : [items];
  for (let some = waiting.pop(); some !== undefined; some = waiting.pop()) {
    try {
      await attempt(some);
    } catch (error) {
      const isDivisible = onFailure(error, some) !== false && some.length > 1;
      const middle = Math.ceil(some.length / 2);
      if (isDivisible) waiting.push(some.slice(middle), some.slice(0, middle));
      else for (const one of some) refused.set(one, error);
    }
  }
  return refused;
}
