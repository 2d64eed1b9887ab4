import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** What a bench process says, one JSON line each. */
export type Message =
  | { readonly kind: "phase"; readonly name: string; readonly pid: number }
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "failed"; readonly text: string };

/** Read a line a bench process wrote; undefined when it is something else (a warning of Node's, say). */
export function parseMessage(line: string): Message | undefined {
  if (!line.startsWith('{"kind":')) return undefined;
  return JSON.parse(line) as Message;
}

/** Lines of a stream, one at a time. */
export interface LineReader {
  /** The next line; undefined at the end. */
  next(): Promise<string | undefined>;
}

/** Read a stream line by line; nothing is lost between two calls. */
export function lineReader(input: Readable): LineReader {
  const iterator = createInterface({ input })[Symbol.asyncIterator]();
  return {
    next: async (): Promise<string | undefined> => {
      const { done, value } = await iterator.next();
      return done === true ? undefined : value;
    },
  };
}

/** The bench process's end of the talk with the harness. */
export interface Harness {
  /** Say that a phase is reached and wait until the harness says go. `pid`: root of the processes to watch, default this one. */
  reached(name: string, pid?: number): Promise<void>;
}

/** Talk to the harness over this process's stdin and stdout. */
export function harnessOver(lines: LineReader, output: Writable): Harness {
  return {
    async reached(name, pid = process.pid): Promise<void> {
      send(output, { kind: "phase", name, pid });
      if ((await lines.next()) === undefined) throw new Error(`the harness went away at ${name}`);
    },
  };
}

/** Write one message. */
export function send(output: Writable, message: Message): void {
  output.write(`${JSON.stringify(message)}\n`);
}
