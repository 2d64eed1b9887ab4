import { ProxyError } from "@turnout/core/backend";

/** Checks a value and gives it typed. @throws {ProxyError} `invalid_object` naming the place. */
export type Shape<T> = (value: unknown, at: string) => T;

type Fields = Readonly<Record<string, Shape<unknown>>>;

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

/** What HNS may leave out, or writes as null: `usual` stands for it then. */
export function optional<T, D>(shape: Shape<T>, usual: D): Shape<T | D> {
  return (value, at) => (value === undefined || value === null ? usual : shape(value, at));
}

/** Objects with these fields, whose names are {@link parseFolded}; what else they have is left out: what we read. */
export function open<F extends Fields>(fields: F): Shape<{ readonly [K in keyof F]: ReturnType<F[K]> }> {
  return (value, at) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(at, `is ${shown(value)}, not an object`);
    const given = value as Readonly<Record<string, unknown>>;
    const read = Object.entries(fields).map(([name, shape]) => [name, shape(given[name.toLowerCase()], `${at}.${name}`)] as const);
    return Object.fromEntries(read) as { readonly [K in keyof F]: ReturnType<F[K]> };
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
