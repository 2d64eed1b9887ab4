import { ProxyError } from "../model/errors.ts";
import type { Plain } from "./backend.ts";
import { refuseUnknownOptions } from "./options.ts";
import type { OptionKind, OptionKinds } from "./options.ts";

/** What an option is read with: its name, its default, and what its value must be. */
export interface OptionOf<T> {
  readonly name: string;
  readonly kind: OptionKind;
  /** The value where the option is not given. */
  readonly otherwise: T;
  /** Completes "NAME must be …". */
  readonly must: string;
  readonly hint?: string;
  /** Undefined: the value is not what it must be. @throws {ProxyError} `invalid_object` with a closer reason. */
  read(value: Plain, name: string): T | undefined;
}

/** An option for each member of O; members that are objects may be made of several options. */
export type OptionsOf<O> = { readonly [M in keyof O]: OptionOf<O[M]> | OptionGroup<O[M]> };
type OptionGroup<T> = T extends string | number | boolean | undefined | readonly unknown[] ? never : OptionsOf<T>;

type AnyOptions = Readonly<Record<string, unknown>>;
const isOption = (value: unknown): value is OptionOf<unknown> => typeof value === "object" && value !== null && "otherwise" in value;

/** The kinds of options by name. */
export function kindsOf(options: object): OptionKinds {
  return Object.fromEntries(
    Object.values(options as AnyOptions).flatMap((one) =>
      isOption(one) ? [[one.name, one.kind]] : Object.entries(kindsOf(one as object)),
    ),
  );
}

/**
 * Check options given by name, and give them their types.
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function readOptions<O>(backend: string, options: OptionsOf<O>, raw: Readonly<Record<string, Plain>>): O {
  refuseUnknownOptions(backend, kindsOf(options), raw);
  const read = (some: AnyOptions): object =>
    Object.fromEntries(Object.entries(some).map(([member, one]) => [member, isOption(one) ? valueOf(one, raw) : read(one as AnyOptions)]));
  return read(options) as O;
}

function valueOf({ name, otherwise, read, must, hint }: OptionOf<unknown>, raw: Readonly<Record<string, Plain>>): unknown {
  const given = Object.hasOwn(raw, name) ? raw[name] : undefined;
  if (given === undefined) return otherwise;
  const value = read(given, name);
  if (value !== undefined) return value;
  const object = JSON.stringify(given);
  throw new ProxyError("invalid_object", `${name} must be ${must}`, { object, ...(hint === undefined ? {} : { hint }) });
}

/** An option that is true or false. */
export function switchOption(name: string, otherwise: boolean): OptionOf<boolean> {
  return { name, kind: "switch", otherwise, must: "true or false", read: (value) => (typeof value === "boolean" ? value : undefined) };
}

/** An option that is one of some words, which are read from flags as they look where one of them is no text. `otherwise` may be none of them. */
export function wordOption<const T extends string | boolean, D = T>(name: string, words: readonly T[], otherwise: D): OptionOf<T | D> {
  const must = `${words.slice(0, -1).join(", ")} or ${String(words.at(-1))}`;
  const kind = words.every((one) => typeof one === "string") ? "text" : "any";
  return { name, kind, otherwise, must, read: (value) => words.find((one) => one === value) };
}

/** An option that is text of a form. `otherwise` may be of another. */
export function textOption<D = string>(name: string, otherwise: D, must: string, form: RegExp, hint?: string): OptionOf<string | D> {
  const read = (value: Plain): string | undefined => (typeof value === "string" && form.test(value) ? value : undefined);
  return { name, kind: "text", otherwise, must, ...(hint === undefined ? {} : { hint }), read };
}

/** An option that is a number in a range. */
export function numberOption(
  name: string,
  otherwise: number,
  { min, max = Number.MAX_SAFE_INTEGER, isWhole = false }: { readonly min: number; readonly max?: number; readonly isWhole?: boolean },
): OptionOf<number> {
  const must = `a ${isWhole ? "whole " : ""}number from ${min} ${max === Number.MAX_SAFE_INTEGER ? "on" : `to ${max}`}`;
  const isRight = (value: Plain): value is number =>
    typeof value === "number" && value >= min && value <= max && (!isWhole || Number.isInteger(value));
  return { name, kind: "number", otherwise, must, read: (value) => (isRight(value) ? value : undefined) };
}

/** An option that is a list of texts; `one` reads each. The list is empty where the option is not given. */
export function listOption<T>(name: string, must: string, one: (text: string, name: string) => T | undefined): OptionOf<readonly T[]> {
  const read = (value: Plain, option: string): readonly T[] | undefined => {
    const values = Array.isArray(value)
      ? value.map((each: Plain) => (typeof each === "string" ? one(each, option) : undefined))
      : [undefined];
    return values.every((each) => each !== undefined) ? values : undefined;
  };
  return { name, kind: "list", otherwise: [], must: `a list, each of it ${must}`, read };
}
