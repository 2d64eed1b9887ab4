import { ProxyError } from "../model/errors.ts";

/**
 * What kind of value an option of a backend takes, on a command line and in a configuration file.
 *
 * - `switch`: true or false
 * - `number`: a finite number
 * - `text`: text, also where it looks like a number
 * - `list`: texts; a flag separates them by commas, and a repeated flag adds to them
 * - `map`: texts by name; a flag is written `a=1,b=2`, and a repeated flag adds to them
 * - `any`: a flag's `true`, `false` and numbers are what they look like, everything else is text
 */
export type OptionKind = "switch" | "number" | "text" | "list" | "map" | "any";

/** The options of a backend by name. */
export type OptionKinds = Readonly<Record<string, OptionKind>>;

/** The kinds there are. */
export const OPTION_KINDS: readonly OptionKind[] = ["switch", "number", "text", "list", "map", "any"];

/** Refuse options that a backend does not have. @throws {ProxyError} `invalid_object` naming the option. */
export function refuseUnknownOptions(backend: string, kinds: OptionKinds, raw: Readonly<Record<string, unknown>>): void {
  const unknown = Object.keys(raw).find((name) => !Object.hasOwn(kinds, name));
  if (unknown === undefined) return;
  const hint = `known are ${Object.keys(kinds).join(", ")}`;
  throw new ProxyError("invalid_object", `unknown ${backend} option ${JSON.stringify(unknown)}`, { hint });
}
