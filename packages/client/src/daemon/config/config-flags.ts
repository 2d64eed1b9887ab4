import { ProxyError } from "@turnout/core";
import { FIELDS, PATHS, type Field } from "./config-fields.ts";
import { readField } from "./kube-proxy-config.ts";
import type { ConfigPath, GivenValues } from "./config-values.ts";

/** One command-line flag that mirrors a configuration field. */
export interface ConfigFlag {
  /** Without dashes. */
  readonly name: string;
  readonly path: ConfigPath;
  /** The word for the value in help; undefined for a switch. */
  readonly placeholder: string | undefined;
  readonly help: string;
  /** Shown in --help; the others have no effect, or only with one backend. */
  readonly isShown: boolean;
}

/** A flag's value as typed; `true` for a switch that stands alone. */
export type FlagText = string | true;

/** Flag values as typed, by name without dashes; a list where a flag was given more than once. */
export type RawFlags = Readonly<Record<string, FlagText | readonly FlagText[]>>;

/** Every flag of the table, named as kube-proxy names it. */
export const CONFIG_FLAGS: readonly ConfigFlag[] = PATHS.flatMap((path) => {
  const field = FIELDS[path] as Field<unknown>;
  if (field.flag === undefined) return [];
  const isShown = field.help !== undefined && field.hasNoEffect !== true;
  return [{ name: field.flag, path, placeholder: field.kind.placeholder, help: field.help ?? "", isShown }];
});

/**
 * Flags of the section iptables that count in mode nftables too, where nobody said which mode it is to be.
 * @source kube-proxy cmd/kube-proxy/app/options.go: --masquerade-all maps to the active mode; the iptables periods apply when it is not ipvs
 */
const ALSO_NFTABLES: Readonly<Partial<Record<ConfigPath, ConfigPath>>> = {
  "iptables.masqueradeAll": "nftables.masqueradeAll",
  "iptables.syncPeriod": "nftables.syncPeriod",
  "iptables.minSyncPeriod": "nftables.minSyncPeriod",
};

/** The flag that sets a field, with its dashes; undefined where only a file does. */
export function flagFor(path: ConfigPath): string | undefined {
  const also = Object.entries(ALSO_NFTABLES).find(([, other]) => other === path)?.[0] as ConfigPath | undefined;
  const { flag } = FIELDS[also ?? path];
  return flag === undefined ? undefined : `--${flag}`;
}

/** Everything that was typed for one flag, in its order; empty: it was not given. */
export function typedTexts(raw: RawFlags, name: string): readonly FlagText[] {
  const typed = Object.hasOwn(raw, name) ? raw[name] : undefined;
  if (typed === undefined) return [];
  return typeof typed === "object" ? typed : [typed];
}

/**
 * Read flags into values, which are not checked yet.
 *
 * Edges: names that are no configuration flags are left alone; unlike in a file, "" and 0 are taken as said, but for flags whose "" asks for nothing.
 * A flag that is given again adds to a list or a map, and replaces anything else; each of its values has to be one.
 * @throws {ProxyError} `invalid_object` naming the flag.
 */
export function parseConfigFlags(raw: RawFlags): GivenValues {
  const given: Partial<Record<ConfigPath, unknown>> = {};
  for (const flag of CONFIG_FLAGS) {
    const { emptyFlag } = FIELDS[flag.path];
    const texts = typedTexts(raw, flag.name).filter((text) => text !== "" || emptyFlag !== "unheard");
    if (texts.length === 0 || (texts.at(-1) === "" && emptyFlag === "unset")) continue;
    const field = FIELDS[flag.path] as Field<unknown>;
    if (texts.includes(true) && flag.placeholder !== undefined) {
      throw new ProxyError("invalid_object", "the flag needs a value", { object: `--${flag.name}` });
    }
    const value = readField(field, `--${flag.name}`, (kind) =>
      texts
        .map((text) => kind.fromFlag(text === true ? "true" : text))
        .reduce((before, next) => (kind.add === undefined ? next : kind.add(before, next))),
    );
    given[flag.path] = value;
    const also = ALSO_NFTABLES[flag.path];
    if (also !== undefined) given[also] = value;
  }
  return given as GivenValues;
}
