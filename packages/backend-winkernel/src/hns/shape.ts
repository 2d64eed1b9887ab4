import { ProxyError } from "@turnout/core/backend";

/** Checks a value and gives it typed. @throws {ProxyError} `invalid_object` naming the place. */
export type Shape<T> = (value: unknown, at: string) => T;

/** A field that may be left out; it is `undefined` then. */
export interface OptionalShape<T> {
  readonly optional: Shape<T>;
}

type Fields = Readonly<Record<string, Shape<unknown> | OptionalShape<unknown>>>;
type RequiredKeys<F extends Fields> = { [K in keyof F]: F[K] extends Shape<unknown> ? K : never }[keyof F];
type OptionalKeys<F extends Fields> = Exclude<keyof F, RequiredKeys<F>>;
type Values<F extends Fields> = { readonly [K in RequiredKeys<F>]: F[K] extends Shape<infer T> ? T : never } & {
  readonly [K in OptionalKeys<F>]?: F[K] extends OptionalShape<infer T> ? T : never;
};

function invalid(at: string, what: string): ProxyError {
  return new ProxyError("invalid_object", `HNS: ${at} ${what}`);
}

/** Texts that match a pattern. */
export function text(pattern: RegExp = /^/): Shape<string> {
  return (value, at) => {
    if (typeof value === "string" && pattern.test(value)) return value;
    throw invalid(at, `is ${shown(value)}, not a text like ${String(pattern)}`);
  };
}

/** Whole numbers in a range. */
export function integer(min: number, max: number): Shape<number> {
  return (value, at) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    throw invalid(at, `is ${shown(value)}, not a whole number from ${min} to ${max}`);
  };
}

/** Lists of one shape. */
export function list<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) throw invalid(at, `is ${shown(value)}, not a list`);
    return value.map((one: unknown, index) => shape(one, `${at}[${index}]`));
  };
}

/** A field that may be left out. */
export function optional<T>(shape: Shape<T>): OptionalShape<T> {
  return { optional: shape };
}

/** Objects with these fields; what else they have is left out: what we read. */
export function open<F extends Fields>(fields: F): Shape<Values<F>> {
  return (value, at) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(at, `is ${shown(value)}, not an object`);
    const given = value as Readonly<Record<string, unknown>>;
    const entries = Object.entries(fields).flatMap(([name, shape]): [string, unknown][] => {
      const field = given[name];
      if (typeof shape === "function") return [[name, shape(field, `${at}.${name}`)]];
      // HNS writes null, too, for what it leaves out elsewhere.
      return field === undefined || field === null ? [] : [[name, shape.optional(field, `${at}.${name}`)]];
    });
    return Object.fromEntries(entries) as Values<F>;
  };
}

/** Parse JSON whose names of fields may be written in any case, as HNS's are; all names become lower case. @throws {ProxyError} `invalid_object`. */
export function parseFolded(json: string, at: string): unknown {
  try {
    return JSON.parse(json, (_, value: unknown) =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).map(([name, field]) => [name.toLowerCase(), field as unknown]))
        : value,
    ) as unknown;
  } catch (error) {
    throw new ProxyError("invalid_object", `HNS: ${at} is no JSON`, { cause: error });
  }
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? "missing";
  return json.length > 80 ? `${json.slice(0, 80)}…` : json;
}
