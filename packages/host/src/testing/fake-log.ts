import type { Log } from "@turnout/core";

/** Lines kept; a long history has many. */
const LINES_MAX = 1_000;

/** A {@link Log} that keeps its last lines, `level message {fields}`. */
export interface FakeLog extends Log {
  readonly lines: readonly string[];
}

/** Make a {@link FakeLog}; it keeps a thousand lines. */
export function createFakeLog(): FakeLog {
  const lines: string[] = [];
  const line =
    (level: string) =>
    (message: string, fields?: Readonly<Record<string, unknown>>): void => {
      if (lines.push(`${level} ${message}${fields === undefined ? "" : ` ${JSON.stringify(fields)}`}`) > LINES_MAX) lines.shift();
    };
  return { lines, debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}
