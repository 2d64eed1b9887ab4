import { ProxyError } from "@turnout/core";
import { expect, test } from "vitest";
import { createLog, textLine, type LogLevel } from "./log.ts";

const NOW = Date.UTC(2026, 0, 1, 12, 3, 4);

function logged(format: "json" | "text", level: LogLevel): string[] {
  const lines: string[] = [];
  const log = createLog({ format, level, write: (line) => lines.push(line), nowMs: () => NOW });
  log.debug("d");
  log.info("i", { rows: 3 });
  log.warn("w", { error: new ProxyError("timed_out", "late") });
  log.error("e", { error: new TypeError("bad") });
  return lines;
}

test("JSON lines hold level, time, message and fields", () => {
  expect(logged("json", "info").map((line) => JSON.parse(line) as unknown)).toEqual([
    { level: "info", time: "2026-01-01T12:03:04.000Z", msg: "i", rows: 3 },
    { level: "warn", time: "2026-01-01T12:03:04.000Z", msg: "w", error: "[timed_out] late" },
    { level: "error", time: "2026-01-01T12:03:04.000Z", msg: "e", error: "TypeError: bad" },
  ]);
});

test("text lines are short", () => {
  expect(logged("text", "info")).toEqual([
    "12:03:04 i rows=3\n",
    '12:03:04 warn  w error="[timed_out] late"\n',
    '12:03:04 error e error="TypeError: bad"\n',
  ]);
});

test.each([
  ["debug", 4],
  ["info", 3],
  ["warn", 2],
  ["error", 1],
] as const)("level %s lets %i of four through", (level, count) => {
  expect([logged("json", level).length, logged("text", level).length]).toEqual([count, count]);
});

test("a hostile name can neither forge a line nor drive the terminal", () => {
  const line = textLine("warn", "bad\nname", { object: "a\u001b[31m\r\n12:00:00 all well", other: undefined }, NOW);
  expect(line).toBe('12:03:04 warn  bad\\x0aname object="a\\\\x1b[31m\\\\x0d\\\\x0a12:00:00 all well"\n');
});
