import type { Log } from "../contract/world.ts";

/** One line of a {@link RecordingLog}. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that keeps its lines. */
export class RecordingLog implements Log {
  readonly lines: LogLine[] = [];

  debug(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ level: "debug", message, fields });
  }

  info(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ level: "info", message, fields });
  }

  warn(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ level: "warn", message, fields });
  }

  error(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ level: "error", message, fields });
  }
}
