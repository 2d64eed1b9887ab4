import type { Plain } from "@turnout/core";
import { FIELDS, type Field } from "./config-fields.ts";
import { CONFIG_FLAGS, type RawFlags } from "./config-flags.ts";

/** Say each flag as /flagz shows it; a value that was typed is said as typed. */
export function flagTexts(flags: RawFlags): Readonly<Record<string, string>> {
  const defaults = CONFIG_FLAGS.map(({ name, path }) => {
    const field = FIELDS[path] as Field<unknown>;
    return [name, flagText(field.kind.show(field.fallback))] as const;
  });
  const typed = Object.entries(flags).map(([name, value]) => [name, value === true ? "true" : value] as const);
  return Object.fromEntries([...defaults, ...typed]);
}

function flagText(shown: Plain): string {
  if (Array.isArray(shown)) return `[${shown.join(",")}]`;
  if (typeof shown === "object" && shown !== null)
    return Object.entries(shown)
      .map(([name, value]) => `${name}=${value === true}`)
      .join(",");
  return String(shown);
}
