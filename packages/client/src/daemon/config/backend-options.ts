import { ProxyError, type BackendModule, type OptionKind, type Plain } from "@turnout/core";
import { LIST, NUMBER, SWITCH, TEXT, TEXTS, type ValueKind } from "./config-kinds.ts";
import { readField } from "./kube-proxy-config.ts";

/** One `--backend-option` as typed. */
export type TypedOption = readonly [name: string, text: string];

/** Options of a backend by name, as {@link BackendModule.parseOptions} takes them. */
export type BackendOptions = Readonly<Record<string, Plain>>;

type Declared = Pick<BackendModule, "options">;

/** true, false and numbers are what they look like; everything else is text. */
function plainValue(text: string): Plain {
  if (text === "true" || text === "false") return text === "true";
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

const ANY: ValueKind<Plain> = {
  placeholder: "VALUE",
  fromFile: (value) => value as Plain,
  fromFlag: plainValue,
  show: (value) => value,
};

const KINDS: Readonly<Record<OptionKind, ValueKind<Plain>>> = {
  switch: SWITCH as ValueKind<Plain>,
  number: NUMBER as ValueKind<Plain>,
  text: TEXT as ValueKind<Plain>,
  list: LIST as ValueKind<Plain>,
  map: TEXTS as ValueKind<Plain>,
  any: ANY,
};

/** What a backend does not declare may be anything: the backend itself refuses it. */
function kindOf(name: string, { options = {} }: Declared): ValueKind<Plain> {
  return KINDS[Object.hasOwn(options, name) ? (options[name] ?? "any") : "any"];
}

/** Split one `--backend-option`. @throws {ProxyError} `invalid_object` for one without `=`. */
export function typedOption(pair: string): TypedOption {
  const equals = pair.indexOf("=");
  if (equals < 1) throw new ProxyError("invalid_object", `"${pair}" is not name=value`, { object: "--backend-option" });
  return [pair.slice(0, equals), pair.slice(equals + 1)];
}

/**
 * Read options that were typed, by the kinds that their backend declares.
 *
 * Edges: what is given again adds to a list or a map, and replaces anything else, as with kube-proxy's flags.
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function optionsFromFlags(typed: readonly TypedOption[], backend: Declared): BackendOptions {
  const byName = Map.groupBy(typed, ([name]) => name);
  return Object.fromEntries(
    [...byName].map(([name, pairs]) => {
      const kind = kindOf(name, backend);
      const value = readField({ kind }, `--backend-option ${name}`, () =>
        pairs.map(([, text]) => kind.fromFlag(text)).reduce((before, next) => kind.add?.(before, next) ?? next),
      );
      return [name, value];
    }),
  );
}

/** Read the options in a configuration file's `turnout.backendOptions`. @throws {ProxyError} `invalid_object` naming the option. */
export function optionsFromFile(given: BackendOptions, backend: Declared, place: string): BackendOptions {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const kind = kindOf(name, backend);
      return [name, readField({ kind }, `${place}.${name}`, () => kind.fromFile(value))];
    }),
  );
}
