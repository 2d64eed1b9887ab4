import { spawn } from "node:child_process";
import { once } from "node:events";
import { ProxyError, type ErrorDetails, type ErrorCode } from "@turnout/core";
import type { Environment } from "../environment.ts";
import { turnoutArguments } from "./proxy.ts";

/** An error as it travels between processes. */
interface PlainError extends Omit<ErrorDetails, "cause"> {
  readonly code: ErrorCode;
  readonly what: string;
}

/** What a holder says: text to pass on, and at last that it is done. */
type Word = { readonly kind: "out" | "err"; readonly text: string } | { readonly kind: "done"; readonly error?: PlainError };

/**
 * Play a demo in a process that outlives this one, pass its words on, and leave it once it is done.
 *
 * Shape: `args` are those of `turnout demo`.
 * Edges: an abort here ends it there, with everything it made.
 * @throws {ProxyError} what the demo there failed with.
 */
export async function runInHolder(args: readonly string[], env: Environment, hasColors: boolean): Promise<void> {
  const child = spawn(process.execPath, [...turnoutArguments(), "demo", "--hold", ...args], {
    // A session of its own: a Ctrl-C or the end of the terminal is not for it.
    detached: true,
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, FORCE_COLOR: hasColors ? "1" : "0" },
  });
  // Only what Node itself says when the process breaks; the demo's own words come as messages, in order.
  child.stderr?.on("data", (chunk: Buffer) => env.err(chunk.toString()));
  const stop = (): void => void child.kill("SIGTERM");
  env.signal.addEventListener("abort", stop, { once: true });
  const { promise: done, resolve } = Promise.withResolvers<PlainError | undefined>();
  child.on("message", (message) => {
    const word = message as Word;
    if (word.kind === "done") resolve(word.error);
    else env[word.kind](word.text);
  });
  const ended = once(child, "close").then((): PlainError => ({ code: "canceled", what: "the demo ended early" }));
  const error = await Promise.race([done, ended]);
  env.signal.removeEventListener("abort", stop);
  if (error !== undefined) throw new ProxyError(error.code, error.what, error);
}

/** The holder's end of the conversation. */
export interface HolderVoice {
  /** Aborts when nobody listens any more before {@link HolderVoice.done}. */
  readonly abandoned: AbortSignal;
  out(text: string): void;
  err(text: string): void;
  /** Say that all is said; resolves when that has left. */
  done(error?: ProxyError): Promise<void>;
}

/** Find the voice in a process started by {@link runInHolder}. @throws {ProxyError} `invalid_object` in any other. */
export function holderVoice(): HolderVoice {
  const send = process.send?.bind(process);
  if (send === undefined) throw new ProxyError("invalid_object", "this option is turnout's own", { object: "--hold", hint: "use --keep" });
  const abandoned = new AbortController();
  const onDisconnect = (): void => abandoned.abort();
  process.once("disconnect", onDisconnect);
  const say = (word: Word): Promise<void> =>
    // Whoever listened may be gone; that is what `abandoned` is about.
    new Promise((resolve) => void send(word, undefined, {}, () => resolve()));
  return {
    abandoned: abandoned.signal,
    out: (text) => void say({ kind: "out", text }),
    err: (text) => void say({ kind: "err", text }),
    done: async (error) => {
      process.removeListener("disconnect", onDisconnect);
      await say({ kind: "done", ...(error === undefined ? {} : { error: plainError(error) }) });
      if (process.connected) process.disconnect();
    },
  };
}

function plainError({ code, what, object, hint }: ProxyError): PlainError {
  return { code, what, ...(object === undefined ? {} : { object }), ...(hint === undefined ? {} : { hint }) };
}
