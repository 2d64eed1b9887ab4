import { parseCIDR, ProxyError, type CIDR, type Plain } from "@turnout/core";
import type { VModuleItem } from "./config-values.ts";
import { formatDuration, parseDuration } from "./duration.ts";

/** How one kind of configuration value is read from a file, from a flag, and shown. Readers throw `invalid_object` saying what they expected. */
export interface ValueKind<T> {
  /** The placeholder in `--help`; undefined for a switch. */
  readonly placeholder: string | undefined;
  fromFile(value: unknown): T;
  fromFlag(text: string): T;
  /** What two flags of one name say together; undefined: the second one counts alone. */
  readonly add?: (before: T, next: T) => T;
  /** The value as /configz shows it. */
  show(value: T): Plain;
}

function expected(what: string, found: unknown): ProxyError {
  return new ProxyError("invalid_object", `expected ${what}, found ${JSON.stringify(found) ?? String(found)}`);
}

function readNumber(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw expected("a number", value);
  return value;
}

/** Go's int32. */
const INTEGER_MAX = 2 ** 31 - 1;

function readInteger(value: unknown): number {
  if (typeof value !== "number" || !Number.isInteger(value)) throw expected("a whole number", value);
  if (value > INTEGER_MAX || value < -INTEGER_MAX - 1) throw expected(`a whole number of ${-INTEGER_MAX - 1} to ${INTEGER_MAX}`, value);
  return value;
}

/** As Go's strconv.ParseInt reads it with base 0: `14`, `0x0e`, `0b1110`, `0o16` or `016`, and `1_000`. */
function integerFromFlag(text: string): number {
  const [, sign, digits = ""] = /^([+-]?)(0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]*|[1-9][\d_]*)$/.exec(text) ?? [];
  if (digits === "" || /__|_$/.test(digits)) throw expected("a whole number", text);
  const value = Number(digits.replaceAll("_", "").replace(/^0(?=\d)/, "0o"));
  return readInteger(sign === "-" && value !== 0 ? -value : value);
}

function numberFromFlag(text: string): number {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) throw expected("a number", text);
  return readNumber(Number(text));
}

function readString(value: unknown): string {
  if (typeof value !== "string") throw expected("text", value);
  return value;
}

function readBoolean(value: unknown): boolean {
  if (typeof value !== "boolean") throw expected("true or false", value);
  return value;
}

/** The words Go's strconv.ParseBool knows, which is what kube-proxy's flags accept. */
const TRUE_WORDS: ReadonlySet<string> = new Set(["1", "t", "T", "true", "TRUE", "True"]);
const FALSE_WORDS: ReadonlySet<string> = new Set(["0", "f", "F", "false", "FALSE", "False"]);

function booleanFromFlag(text: string): boolean {
  if (TRUE_WORDS.has(text)) return true;
  if (FALSE_WORDS.has(text)) return false;
  throw expected("true or false", text);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One field of a line with commas: in quotes, or without any. */
const LIST_PART = /(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/y;

/** As pflag's string slices: one line of RFC 4180. What stands between two commas is not trimmed, and may be empty. */
function listFromFlag(text: string): readonly string[] {
  if (text === "") return [];
  const parts: string[] = [];
  LIST_PART.lastIndex = 0;
  for (;;) {
    const [, quoted, bare = "", end] = LIST_PART.exec(text) ?? [];
    if (end === undefined) throw expected("a list with commas", text);
    parts.push(quoted?.replaceAll('""', '"') ?? bare);
    if (end !== ",") return parts;
  }
}

/** A kind whose values are shown as they are. */
function plain<T extends Plain>(
  placeholder: string | undefined,
  fromFile: (value: unknown) => T,
  fromFlag: (text: string) => T,
  add?: (before: T, next: T) => T,
): ValueKind<T> {
  return { placeholder, fromFile, fromFlag, show: (value) => value, ...(add === undefined ? {} : { add }) };
}

function readList<T>(value: unknown, read: (one: unknown) => T): readonly T[] {
  if (!Array.isArray(value)) throw expected("a list", value);
  return value.map(read);
}

function readMap<T>(value: unknown, what: string, read: (one: unknown) => T): Readonly<Record<string, T>> {
  if (!isRecord(value)) throw expected(`a map of names to ${what}`, value);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, read(one)]));
}

/** Split `name=value` pairs. */
function pairsOf(pairs: readonly string[], text: string, form: string): readonly (readonly [name: string, value: string])[] {
  return pairs
    .filter((pair) => pair !== "")
    .map((pair) => {
      const equals = pair.indexOf("=");
      if (equals < 1) throw expected(form, text);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    });
}

/** Text as it is. */
export const TEXT: ValueKind<string> = plain("TEXT", readString, (text) => text);

/** true or false; a flag may stand alone for true. */
export const SWITCH: ValueKind<boolean> = plain(undefined, readBoolean, booleanFromFlag);

/** Read a flag that may stand alone, by the words that Go takes. @throws {ProxyError} `invalid_object` for any other. */
export function switchOf(flag: string, said: string | true | undefined): boolean {
  if (said === undefined || said === true) return said === true;
  if (TRUE_WORDS.has(said) || FALSE_WORDS.has(said)) return TRUE_WORDS.has(said);
  throw new ProxyError("invalid_object", `"${said}" is neither true nor false`, { object: flag });
}

/** A whole number. */
export const INTEGER: ValueKind<number> = plain("N", readInteger, integerFromFlag);

/** Any finite number. */
export const NUMBER: ValueKind<number> = plain("N", readNumber, numberFromFlag);

/** A Go duration, held in milliseconds. */
export const DURATION: ValueKind<number> = {
  placeholder: "DURATION",
  fromFile: (value) => parseDuration(readString(value)),
  fromFlag: parseDuration,
  show: formatDuration,
};

/** As a duration; a file may also have a whole number of nanoseconds. */
export const DURATION_OR_NS: ValueKind<number> = {
  ...DURATION,
  fromFile: (value) => (typeof value === "number" ? readNumber(value) / 1e6 : DURATION.fromFile(value)),
};

/** Go's resource.Quantity, e.g. `512Ki`. */
const QUANTITY_TEXT = /^[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/;

function quantity(text: string): string {
  if (!QUANTITY_TEXT.test(text)) throw expected("a quantity like 512Ki", text);
  return text;
}

/** A quantity of bytes, as it is written. */
export const QUANTITY: ValueKind<string> = plain(
  "QUANTITY",
  (value) => quantity(typeof value === "number" ? String(value) : readString(value)),
  quantity,
);

function readModule(value: unknown): VModuleItem {
  if (!isRecord(value)) throw expected("a map of filePattern and verbosity", value);
  return { filePattern: readString(value["filePattern"] ?? ""), verbosity: readLevel(value["verbosity"] ?? 0) };
}

function moduleFromFlag(text: string): VModuleItem {
  const [filePattern, verbosity, more] = text.split("=");
  if (!filePattern || verbosity === undefined || more !== undefined) throw expected("pattern=N,other=N", text);
  return { filePattern, verbosity: levelFromFlag(verbosity) };
}

function readLevel(value: unknown): number {
  const level = readInteger(value);
  if (level < 0) throw expected("a level of 0 or more", value);
  return level;
}

function levelFromFlag(text: string): number {
  if (!/^\d+$/.test(text)) throw expected("a level like 4", text);
  return readLevel(Number(text));
}

/** How much is logged. */
export const LEVEL: ValueKind<number> = plain("LEVEL", readLevel, levelFromFlag);

/** How much is logged of single files; a flag is written `pattern=N,other=N`. */
export const MODULES: ValueKind<readonly VModuleItem[]> = {
  placeholder: "PATTERN=N,…",
  fromFile: (value) => readList(value, readModule),
  fromFlag: (text) =>
    text
      .split(",")
      .filter((part) => part !== "")
      .map(moduleFromFlag),
  add: (before, next) => [...before, ...next],
  show: (value) => value.map(({ filePattern, verbosity }) => ({ filePattern, verbosity })),
};

/** A list of text; a flag separates by commas. */
export const LIST: ValueKind<readonly string[]> = plain(
  "LIST",
  (value) => readList(value, readString),
  listFromFlag,
  (before, next) => [...before, ...next],
);

/** Texts by name; a flag is written `a=1,b=2`. */
export const TEXTS: ValueKind<Readonly<Record<string, string>>> = plain(
  "NAME=TEXT,…",
  (value) => readMap(value, "text", readString),
  (text) => Object.fromEntries(pairsOf(listFromFlag(text), text, "name=text,other=text")),
  (before, next) => ({ ...before, ...next }),
);

/** Values of any kind by name, without those that are null; a file's only. */
export const ANY_BY_NAME: ValueKind<Readonly<Record<string, Plain>>> = plain(
  "NAME=VALUE",
  (value) => {
    const all = readMap(value, "values", (one) => one);
    return Object.fromEntries(Object.entries(all).filter(([, one]) => one !== null)) as Readonly<Record<string, Plain>>;
  },
  (text) => {
    throw expected("a map in a file", text);
  },
);

/** Names with true or false; a flag is written `A=true,B=false`. */
export const SWITCHES: ValueKind<Readonly<Record<string, boolean>>> = plain(
  "NAME=BOOL,…",
  (value) => readMap(value, "true or false", readBoolean),
  (text) =>
    Object.fromEntries(
      pairsOf(text.split(","), text, "Name=true,Other=false").map(([name, on]) => [name.trim(), booleanFromFlag(on.trim())]),
    ),
  (before, next) => ({ ...before, ...next }),
);

/** Read a CIDR of the configuration: without blanks around it, as in kube-proxy. Undefined: it is none. */
export function cidrOf(text: string): CIDR | undefined {
  return text === text.trim() ? parseCIDR(text) : undefined;
}
