import { ProxyError, type Log } from "@turnout/core";
import { pino } from "pino";

/** How much is logged; each level includes those before it. */
export type LogLevel = "error" | "warn" | "info" | "debug";

/** Where log lines go and how they look. */
export interface LogOptions {
  /** JSON for machines, or one short line for people. */
  readonly format: "json" | "text";
  readonly level: LogLevel;
  /** Takes complete lines, newline included. */
  readonly write: (line: string) => void;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
}

const LEVELS: readonly LogLevel[] = ["error", "warn", "info", "debug"];

/** Make errors plain data: a ProxyError is its one line, others keep their name too. */
function plainField(value: unknown): unknown {
  if (ProxyError.is(value)) return value.message;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return value;
}

function plainFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainField(value)]));
}

/** Control characters, which could forge lines or drive a terminal. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

function printable(text: string): string {
  return text.replace(CONTROL, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

function fieldText(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? printable(value) : JSON.stringify(printable(value));
  return JSON.stringify(value) ?? String(value);
}

/**
 * Write one line for people: `12:03:04 warn  message key=value`.
 *
 * Edges: info has no word; control characters are escaped, so that a hostile name can't forge a line.
 */
export function textLine(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>, nowMs: number): string {
  const time = new Date(nowMs).toISOString().slice(11, 19);
  const word = level === "info" ? "" : `${level.padEnd(5)} `;
  const tail = Object.entries(plainFields(fields))
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${fieldText(value)}`);
  return `${time} ${word}${printable(message)}${tail.join("")}\n`;
}

/** Make a log: pino's JSON lines, or short lines for people. Never throws while logging. */
export function createLog(options: LogOptions): Log {
  const emit = options.format === "json" ? jsonEmitter(options) : textEmitter(options);
  return {
    debug: (message, fields = {}) => emit("debug", message, fields),
    info: (message, fields = {}) => emit("info", message, fields),
    warn: (message, fields = {}) => emit("warn", message, fields),
    error: (message, fields = {}) => emit("error", message, fields),
  };
}

type Emitter = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>) => void;

function jsonEmitter(options: LogOptions): Emitter {
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${new Date(options.nowMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: options.write },
  );
  return (level, message, fields) => logger[level](plainFields(fields), message);
}

function textEmitter(options: LogOptions): Emitter {
  const most = LEVELS.indexOf(options.level);
  return (level, message, fields) => {
    if (LEVELS.indexOf(level) <= most) options.write(textLine(level, message, fields, options.nowMs()));
  };
}
