/** Licences that a dependency of a package under Apache-2.0 may have. */
const ALLOWED: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "Unlicense",
]);

/** Whether one may depend on what has this licence: an SPDX expression of allowed ones. Pure. */
export function isAllowed(expression: string): boolean {
  const words = expression.replace(/[()]/g, " ").trim();
  if (words.includes(" OR ")) return words.split(" OR ").some(isAllowed);
  return words.split(" AND ").every((word) => ALLOWED.has(word.trim()));
}
