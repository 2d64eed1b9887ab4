/**
 * Compare two versions: below 0 when the first is older, above 0 when it is newer. Pure.
 *
 * @source semver.org 2.0.0, rules 10 and 11: a version with a prerelease is older than the one without; numbers are older than words; build metadata counts for nothing.
 */
export function comparePrecedence(one: string, other: string): number {
  const [a, b] = [partsOf(one), partsOf(other)];
  const core = compareParts(a.core, b.core);
  if (core !== 0) return core;
  if (a.prerelease.length === 0 || b.prerelease.length === 0) return b.prerelease.length - a.prerelease.length;
  return compareParts(a.prerelease, b.prerelease);
}

/** Whether a version was made to be tried, as those of nightly. Pure. */
export function isPrerelease(version: string): boolean {
  return partsOf(version).prerelease.length > 0;
}

function partsOf(version: string): { readonly core: readonly string[]; readonly prerelease: readonly string[] } {
  const [, core = "", prerelease = ""] = /^([^-+]*)-?([^+]*)/.exec(version) ?? [];
  return { core: core.split("."), prerelease: prerelease === "" ? [] : prerelease.split(".") };
}

function compareParts(one: readonly string[], other: readonly string[]): number {
  for (const [index, a] of one.entries()) {
    const b = other[index];
    if (b === undefined) return 1;
    const difference = comparePart(a, b);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

function comparePart(one: string, other: string): number {
  const [a, b] = [one, other].map((part) => (/^\d+$/.test(part) ? Number(part) : undefined));
  if (a !== undefined && b !== undefined) return a - b;
  if (a !== undefined || b !== undefined) return a === undefined ? 1 : -1;
  return one < other ? -1 : one > other ? 1 : 0;
}
