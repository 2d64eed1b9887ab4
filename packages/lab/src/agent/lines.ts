import type { Readable, Writable } from "node:stream";
import { ProxyError } from "@turnout/core/backend";

/**
 * Hand over what a stream carries line by line.
 * Edges: an unfinished last line is left out. Errors of the stream stay with its own listeners (readline would throw them again).
 */
export function eachLine(input: Readable, take: (line: string) => void): void {
  let rest = "";
  input.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  });
}

/** Functions that one end offers the other, by name; arguments and results are JSON. */
export type Handlers = Readonly<Record<string, (argument: never) => Promise<unknown>>>;

interface Question {
  readonly id: number;
  readonly call: string;
  readonly argument: unknown;
}

interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

/**
 * Answer questions, one JSON object a line, until the input ends; calls run side by side.
 * A call that throws is answered with its message; a line that is not a question ends the process (a programmer's error).
 */
export function serveLines(input: Readable, output: Writable, handlers: Handlers): Promise<void> {
  const send = (reply: Reply): void => {
    output.write(`${JSON.stringify(reply)}\n`);
  };
  eachLine(input, (line) => {
    const { id, call, argument } = JSON.parse(line) as Question;
    const handler = handlers[call] as ((argument: unknown) => Promise<unknown>) | undefined;
    if (handler === undefined) {
      send({ id, error: `no call ${call}` });
      return;
    }
    handler(argument).then(
      (result) => send({ id, result }),
      (error: unknown) => send({ id, error: error instanceof Error ? error.message : String(error) }),
    );
  });
  return new Promise((resolve, reject) => {
    input.on("end", resolve).on("error", reject);
  });
}

/** The asking end of such a conversation. */
export interface LineCaller {
  /** Ask and wait. @throws {ProxyError} `tool_failed` when the other end refuses or is gone. */
  ask(call: string, argument: unknown): Promise<unknown>;
  /** Fail every open and future question. */
  end(reason: string): void;
}

/** Ask over a pair of pipes. `name` is who answers, for error messages. */
export function callLines(name: string, output: Readable, input: Writable): LineCaller {
  const open = new Map<number, { resolve: (value: unknown) => void; reject: (error: ProxyError) => void }>();
  let ended: string | undefined;
  let lastId = 0;
  const end = (reason: string): void => {
    ended ??= reason;
    for (const { reject } of open.values()) reject(new ProxyError("tool_failed", "agent is gone", { object: name, hint: ended }));
    open.clear();
  };
  // A dead peer shows as EPIPE here and as the end of its output; the latter carries the news.
  input.on("error", (error) => end(error.message));
  eachLine(output, (line) => {
    const reply = JSON.parse(line) as Reply;
    const waiting = open.get(reply.id);
    open.delete(reply.id);
    if (reply.error === undefined) waiting?.resolve(reply.result);
    else waiting?.reject(new ProxyError("tool_failed", reply.error, { object: name }));
  });
  output.on("close", () => end("its output ended"));
  return {
    end,
    ask: (call, argument) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) {
          reject(new ProxyError("tool_failed", "agent is gone", { object: name, hint: ended }));
          return;
        }
        lastId += 1;
        open.set(lastId, { resolve, reject });
        input.write(`${JSON.stringify({ id: lastId, call, argument })}\n`);
      }),
  };
}
