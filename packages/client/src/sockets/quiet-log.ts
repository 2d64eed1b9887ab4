import type { Log } from "@turnout/core";

const EVERY_MS = 60_000;
const SUBJECTS_MAX = 1_000;

/** Warns of something that may happen with every connection: once a minute for each subject, with how often it was meanwhile. */
export class QuietLog {
  readonly #log: Log;
  readonly #nowMs: () => number;
  readonly #said = new Map<string, { atMs: number; unsaid: number }>();

  constructor(log: Log, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** Warn, unless it was said within the last minute. `subject` is one of few. */
  warn(message: string, subject: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const key = `${message} ${subject}`;
    const nowMs = this.#nowMs();
    const said = this.#said.get(key);
    if (said !== undefined && nowMs - said.atMs < EVERY_MS) {
      said.unsaid++;
      return;
    }
    this.#log.warn(message, { subject, ...fields, ...(said === undefined || said.unsaid === 0 ? {} : { alsoUnsaid: said.unsaid }) });
    this.#said.delete(key);
    this.#said.set(key, { atMs: nowMs, unsaid: 0 });
    if (this.#said.size > SUBJECTS_MAX) for (const oldest of this.#said.keys()) return void this.#said.delete(oldest);
  }
}
