import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { ProxyError } from "@turnout/core";
import type { ExecResult } from "@turnout/core";
import { commandLine, signalText, startError, STDERR_TAIL } from "./exec-errors.ts";

/** stderr above this many bytes loses its beginning: nobody reads more, and a tool that never stops complaining must not cost memory. */
const MAX_STDERR_BYTES = 1 << 20;

/** A process of ours from its start to its end. */
export class Child {
  /** Its command line, for messages. */
  readonly object: string;
  readonly #file: string;
  /** How it ended: gives what it left, or throws. A function, because an error that nobody asks for yet is no unhandled one. */
  readonly #end = Promise.withResolvers<() => ExecResult>();
  readonly #maxOutputBytes: number;
  readonly #child: ChildProcess | undefined;
  readonly #stdout: Buffer[] = [];
  readonly #stderr = new Tail(MAX_STDERR_BYTES);
  #stdoutBytes = 0;

  constructor(
    file: string,
    args: readonly string[],
    { hasInput, maxOutputBytes }: { readonly hasInput: boolean; readonly maxOutputBytes: number },
  ) {
    this.object = commandLine(file, args);
    this.#file = file;
    this.#maxOutputBytes = maxOutputBytes;
    try {
      // LC_ALL=C: messages of tools are read in one language and one character order.
      const env = { ...process.env, LC_ALL: "C" };
      this.#child = spawn(file, args, { stdio: [hasInput ? "pipe" : "ignore", "pipe", "pipe"], env, windowsHide: true });
    } catch (error) {
      this.#fail(startError(file, args, error));
      return;
    }
    const { stdin, stdout, stderr } = this.#child;
    this.#child.once("error", (error) => this.stop(startError(file, args, error)));
    stdout?.on("data", (chunk: Buffer) => this.#take(chunk));
    stderr?.on("data", (chunk: Buffer) => this.#stderr.push(chunk));
    // EPIPE: the child did not want all of its input. Why not is in its exit code and stderr, which is what the caller gets.
    stdin?.on("error", (error) => this.#stderr.push(Buffer.from(`(stdin: ${error.message})\n`)));
    this.#child.once("close", (code, killedBy) => this.#finish(code, killedBy));
  }

  /** Undefined: it did not start. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The end of what it has complained about. */
  get lastWords(): string {
    return this.#stderr.text().slice(-STDERR_TAIL);
  }

  /** Wait for what it leaves. @throws {ProxyError} when it didn't start, was stopped, or printed too much. */
  async result(): Promise<ExecResult> {
    const outcome = await this.#end.promise;
    return outcome();
  }

  /** Write its input, and close that. */
  give(input: string): void {
    this.#child?.stdin?.end(Buffer.from(input));
  }

  /** End it for a reason, which {@link Child.result} throws; what has ended stays as it is. SIGKILL because nothing else is sure. */
  stop(reason: ProxyError): void {
    this.#fail(reason);
    this.#child?.kill("SIGKILL");
    // The pipes are let go as well: a grandchild that holds them must not keep us waiting.
    this.#child?.stdin?.destroy();
    this.#child?.stdout?.destroy();
    this.#child?.stderr?.destroy();
  }

  #take(chunk: Buffer): void {
    this.#stdoutBytes += chunk.length;
    this.#stdout.push(chunk);
    if (this.#stdoutBytes <= this.#maxOutputBytes) return;
    this.stop(
      new ProxyError("tool_failed", `more than ${this.#maxOutputBytes} bytes of output, so it was killed`, { object: this.object }),
    );
  }

  #finish(code: number | null, killedBy: NodeJS.Signals | null): void {
    // Every caller reports what a program complained about; one that a signal ended could not complain.
    if (killedBy !== null) this.#stderr.push(Buffer.from(`${signalText(this.#file, killedBy)}\n`));
    const end = killedBy === null ? { code: code ?? 0 } : { code: 128 + constants.signals[killedBy], signal: killedBy };
    try {
      const result = { ...end, stdout: Buffer.concat(this.#stdout).toString(), stderr: this.#stderr.text() };
      this.#end.resolve(() => result);
    } catch (error) {
      // Text above V8's longest string (512 Mi units) can't be handed over.
      this.#fail(ProxyError.from(error, "tool_failed", "the output can't be read", { object: this.object }));
    }
  }

  #fail(error: ProxyError): void {
    this.#end.resolve(() => {
      throw error;
    });
  }
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
