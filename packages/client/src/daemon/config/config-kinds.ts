import { ProxyError, type Plain } from "@turnout/core";
import { formatDuration, parseDuration } from "./duration.ts";

/** How one kind of configuration value is read from a file, from a flag, and shown. Readers throw `invalid_object` saying what they expected. */
export interface ValueKind<T> {
  /** The placeholder in `--help`; undefined for a switch. */
  readonly placeholder: string | undefined;
  fromFile(value: unknown): T;
  fromFlag(text: string): T;
  /** The value as /configz shows it. */
  show(value: T): Plain;
}

function expected(what: string, found: unknown): ProxyError {
  return new ProxyError("invalid_object", `expected ${what}, found ${JSON.stringify(found) ?? String(found)}`);
}

function readNumber(value: unknown, integer: boolean): number {
  if (typeof value !== "number" || !Number.isFinite(value) || (integer && !Number.isSafeInteger(value))) {
    throw expected(integer ? "a whole number" : "a number", value);
  }
  return value;
}

function numberFromFlag(text: string, integer: boolean): number {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)$/.test(text)) throw expected(integer ? "a whole number" : "a number", text);
  return readNumber(Number(text), integer);
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

function readBooleanMap(value: unknown): Readonly<Record<string, boolean>> {
  if (!isRecord(value)) throw expected("a map of names to true or false", value);
  return Object.fromEntries(Object.entries(value).map(([name, on]) => [name, readBoolean(on)]));
}

function booleanMapFromFlag(text: string): Readonly<Record<string, boolean>> {
  const pairs = text.split(",").filter((pair) => pair !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf("=");
      if (equals < 1) throw expected("Name=true,Other=false", text);
      return [pair.slice(0, equals), booleanFromFlag(pair.slice(equals + 1))];
    }),
  );
}

function splitList(text: string): readonly string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** Text as it is. */
export const TEXT: ValueKind<string> = {
  placeholder: "TEXT",
  fromFile: readString,
  fromFlag: (text) => text,
  show: (value) => value,
};

/** true or false; a flag may stand alone for true. */
export const SWITCH: ValueKind<boolean> = {
  placeholder: undefined,
  fromFile: readBoolean,
  fromFlag: booleanFromFlag,
  show: (value) => value,
};

/** A whole number. */
export const INTEGER: ValueKind<number> = {
  placeholder: "N",
  fromFile: (value) => readNumber(value, true),
  fromFlag: (text) => numberFromFlag(text, true),
  show: (value) => value,
};

/** Any finite number. */
export const NUMBER: ValueKind<number> = {
  placeholder: "N",
  fromFile: (value) => readNumber(value, false),
  fromFlag: (text) => numberFromFlag(text, false),
  show: (value) => value,
};

/** A Go duration, held in milliseconds. */
export const DURATION: ValueKind<number> = {
  placeholder: "DURATION",
  fromFile: (value) => parseDuration(readString(value)),
  fromFlag: parseDuration,
  show: formatDuration,
};

/** A list of text; a flag separates by commas. */
export const LIST: ValueKind<readonly string[]> = {
  placeholder: "LIST",
  fromFile: (value) => {
    if (!Array.isArray(value)) throw expected("a list", value);
    return value.map(readString);
  },
  fromFlag: splitList,
  show: (value) => value,
};

/** Names with true or false; a flag is written `A=true,B=false`. */
export const SWITCHES: ValueKind<Readonly<Record<string, boolean>>> = {
  placeholder: "NAME=BOOL,…",
  fromFile: readBooleanMap,
  fromFlag: booleanMapFromFlag,
  show: (value) => value,
};
