import type { Cause, UnjudgedRule } from "@turnout/core";

/** What is wrong alike on the ways to several endpoints is said of the first. */
export function firstOfEach(found: readonly (readonly Cause[])[]): readonly Cause[] {
  const byId = Map.groupBy(found.flat(), ({ id }) => id);
  return [...byId.values()].flatMap(([first, ...others]) => {
    const more = new Set(others.map(({ says }) => says).filter((says) => says !== first?.says)).size;
    return first === undefined ? [] : [more === 0 ? first : { ...first, says: `${first.says} (and ${more} more like it)` }];
  });
}

/** A rule that several packets meet is named once. */
export function distinctRules(found: readonly { readonly unjudged?: readonly UnjudgedRule[] }[]): readonly UnjudgedRule[] {
  const all = found.flatMap(({ unjudged = [] }) => unjudged);
  return [...new Map(all.map((rule) => [`${rule.says} ${rule.rule}`, rule])).values()];
}

/** What concerns several endpoints is said once, with what lets each of them through. */
export function shared(found: readonly (readonly Cause[])[]): readonly Cause[] {
  const reported = new Map<string, Cause>();
  for (const cause of found.flat()) {
    const key = `${cause.id} ${cause.show?.join()}`;
    const first = reported.get(key) ?? cause;
    const commands = new Set([...(first.commands ?? []), ...(cause.commands ?? [])]);
    reported.set(key, commands.size === 0 ? first : { ...first, commands: [...commands] });
  }
  return [...reported.values()];
}
