import type { Plain } from "@turnout/core";
import { FIELDS, type Field } from "./config-fields.ts";
import { CONFIG_FLAGS, typedTexts, type RawFlags } from "./config-flags.ts";

/** Defaults of kube-proxy's flags that mirror no field, or whose field has another one. */
const OTHER_DEFAULTS: Readonly<Record<string, string>> = {
  "boot-id-file": "/proc/sys/kernel/random/boot_id",
  cleanup: "false",
  config: "",
  "healthz-bind-address": "0.0.0.0:10256",
  "healthz-port": "10256",
  help: "false",
  "init-only": "false",
  "machine-id-file": "/etc/machine-id,/var/lib/dbus/machine-id",
  master: "",
  "metrics-bind-address": "127.0.0.1:10249",
  "metrics-port": "10249",
  version: "false",
  vmodule: "",
  "write-config-to": "",
};

/** Say each flag as /flagz shows it; a value that was typed is said as typed, with a comma between those of a list or a map. `config` is the path of the configuration file. */
export function flagTexts(flags: RawFlags, config: string | undefined): Readonly<Record<string, string>> {
  const defaults = CONFIG_FLAGS.map(({ name, path }) => {
    const field = FIELDS[path] as Field<unknown>;
    return [name, flagText(field.kind.show(field.fallback))] as const;
  });
  const adds = new Set(CONFIG_FLAGS.filter(({ path }) => FIELDS[path].kind.add !== undefined).map(({ name }) => name));
  const typed = Object.keys(flags).map((name) => {
    const texts = typedTexts(flags, name).map((text) => (text === true ? "true" : text));
    return [name, adds.has(name) ? texts.filter((text) => text !== "").join(",") : (texts.at(-1) ?? "")] as const;
  });
  return { ...Object.fromEntries(defaults), ...OTHER_DEFAULTS, ...(config === undefined ? {} : { config }), ...Object.fromEntries(typed) };
}

function flagText(shown: Plain): string {
  if (Array.isArray(shown)) return `[${shown.join(",")}]`;
  if (typeof shown === "object" && shown !== null)
    return Object.entries(shown)
      .map(([name, value]) => `${name}=${value === true}`)
      .join(",");
  return String(shown);
}
