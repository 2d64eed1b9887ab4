import { spawn } from "node:child_process";
import type { ChildProcess, SpawnOptions } from "node:child_process";
import { constants } from "node:os";
import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult, ExecSession } from "@turnout/core";
import { commandLine, startError, STDERR_TAIL } from "./exec-errors.ts";
import { openSession } from "./exec-session.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 2 ** 30;
/** stderr above this many bytes loses its beginning: nobody reads more, and a tool that never stops complaining must not cost memory. */
const MAX_STDERR_BYTES = 1 << 20;

/**
 * Make the real {@link Exec}: programs of this machine, never through a shell, always with LC_ALL=C.
 *
 * Edges: a child killed by a signal has code 128 + its number, as in a shell; of stderr the last MiB is kept.
 */
export function createExec(): Exec {
  return {
    run: (file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> => run(file, args, options),
    open: (file: string, args: readonly string[]): ExecSession =>
      openSession(
        () => spawn(file, args, spawnOptions(true)),
        commandLine(file, args),
        (error) => startError(file, args, error),
      ),
  };
}

// LC_ALL=C: messages of tools are read in one language and one character order.
function spawnOptions(hasInput: boolean): SpawnOptions {
  return { stdio: [hasInput ? "pipe" : "ignore", "pipe", "pipe"], env: { ...process.env, LC_ALL: "C" }, windowsHide: true };
}

function run(file: string, args: readonly string[], options: ExecOptions): Promise<ExecResult> {
  const { input, signal, timeoutMs = DEFAULT_TIMEOUT_MS, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES } = options;
  const object = commandLine(file, args);
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(canceled(object, signal));
    let child: ChildProcess;
    try {
      child = spawn(file, args, spawnOptions(input !== undefined));
    } catch (error) {
      return reject(startError(file, args, error));
    }
    const stdout: Buffer[] = [];
    const stderr = new Tail(MAX_STDERR_BYTES);
    let stdoutBytes = 0;
    const onAbort = (): void => stop(canceled(object, signal));
    const timer = setTimeout(() => stop(timedOut(object, timeoutMs, stderr.text())), timeoutMs);
    const cleanUp = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    };
    // The pipes are let go as well: a grandchild that holds them must not keep us waiting.
    const stop = (reason: ProxyError): void => {
      cleanUp();
      child.kill("SIGKILL");
      child.stdin?.destroy();
      child.stdout?.destroy();
      child.stderr?.destroy();
      reject(reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    child.once("error", (error) => stop(startError(file, args, error)));
    child.stdout?.on("data", (chunk: Buffer) => {
      stdoutBytes += chunk.length;
      stdout.push(chunk);
      if (stdoutBytes > maxOutputBytes) stop(tooMuchOutput(object, maxOutputBytes));
    });
    child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.once("close", (code, killedBy) => {
      cleanUp();
      try {
        resolve({ code: exitCode(code, killedBy), stdout: Buffer.concat(stdout).toString(), stderr: stderr.text() });
      } catch (error) {
        // Text above V8's longest string (512 Mi units) can't be handed over.
        reject(ProxyError.from(error, "tool_failed", "the output can't be read", { object }));
      }
    });
    // EPIPE: the child did not want all of its input. Why not is in its exit code and stderr, which is what the caller gets.
    child.stdin?.on("error", (error) => stderr.push(Buffer.from(`(stdin: ${error.message})\n`)));
    if (input !== undefined) child.stdin?.end(Buffer.from(input));
  });
}

function exitCode(code: number | null, killedBy: NodeJS.Signals | null): number {
  return code ?? 128 + (killedBy === null ? 0 : constants.signals[killedBy]);
}

function canceled(object: string, signal: AbortSignal | undefined): ProxyError {
  return new ProxyError("canceled", "the command was given up", { object, cause: signal?.reason });
}

function timedOut(object: string, timeoutMs: number, stderr: string): ProxyError {
  const cause = stderr === "" ? undefined : new Error(stderr.slice(-STDERR_TAIL));
  return new ProxyError("timed_out", `no end after ${timeoutMs} ms, so it was killed`, { object, cause });
}

function tooMuchOutput(object: string, maxOutputBytes: number): ProxyError {
  return new ProxyError("tool_failed", `more than ${maxOutputBytes} bytes of output, so it was killed`, { object });
}

/** The last bytes of a stream. */
class Tail {
  #chunks: Buffer[] = [];
  #bytes = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    // Compacting only at twice the limit keeps the copying in proportion to what arrives.
    if (this.#bytes > 2 * this.#limit) this.#compact();
  }

  text(): string {
    if (this.#bytes > this.#limit) this.#compact();
    return Buffer.concat(this.#chunks).toString();
  }

  #compact(): void {
    const kept = Buffer.concat(this.#chunks).subarray(-this.#limit);
    this.#chunks = [Buffer.from(kept)];
    this.#bytes = kept.length;
  }
}
