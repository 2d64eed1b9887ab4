import type { ChildProcess } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import type { Readable } from "node:stream";
import { ProxyError } from "@turnout/core";
import type { ExecSession } from "@turnout/core";
import { STDERR_TAIL } from "./exec-errors.ts";
import { MarkerBuffer } from "./marker-buffer.ts";

/** Unread output above this (UTF-16 code units) ends the child: nobody is reading, or the marker never comes. */
const MAX_UNREAD = 64 << 20;

interface Reader {
  readonly marker: string;
  readonly timer: NodeJS.Timeout;
  readonly resolve: (text: string) => void;
  readonly reject: (error: ProxyError) => void;
}

/**
 * Keep a child and talk to it; see `Exec.open`.
 *
 * Shape: an answer is what the other stream held, then this one's text up to the marker; the marker lies in one stream.
 * Edges: reads are answered in the order they were asked; output that came before the child's death can still be
 * read; a read that timed out leaves the child alive and its late answer in the buffer, so close it or use markers
 * that never repeat.
 */
export function openSession(start: () => ChildProcess, object: string, startError: (error: unknown) => ProxyError): ExecSession {
  return new ChildSession(start, object, startError);
}

class ChildSession implements ExecSession {
  readonly #object: string;
  readonly #child: ChildProcess | undefined;
  readonly #stdout = new MarkerBuffer();
  readonly #stderr = new MarkerBuffer();
  #readers: Reader[] = [];
  #stderrTail = "";
  #ended: ProxyError | undefined;
  #isAnswering = false;

  constructor(start: () => ChildProcess, object: string, startError: (error: unknown) => ProxyError) {
    this.#object = object;
    try {
      this.#child = start();
    } catch (error) {
      this.#child = undefined;
      this.#end(startError(error));
      return;
    }
    const child = this.#child;
    this.#collect(child.stdout, this.#stdout);
    this.#collect(child.stderr, this.#stderr);
    child.once("error", (error) => this.#end(startError(error)));
    child.once("close", (code, killedBy) => this.#end(this.#died(killedBy ?? `exit code ${code ?? "unknown"}`)));
    // EPIPE when the child is gone: its end is what readers are told.
    child.stdin?.on("error", (error) => this.#noteStderr(`(stdin: ${error.message})\n`));
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  write(text: string): void {
    const stdin = this.#child?.stdin;
    if (this.#ended !== undefined || stdin === null || stdin === undefined || !stdin.writable) return;
    stdin.write(Buffer.from(text));
  }

  readUntil(marker: string, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#readers = this.#readers.filter((reader) => reader.timer !== timer);
        reject(new ProxyError("timed_out", `no answer within ${timeoutMs} ms`, { object: this.#object }));
        this.#serve();
      }, timeoutMs);
      this.#readers.push({ marker, timer, resolve, reject });
      this.#serve();
    });
  }

  close(): void {
    this.#end(new ProxyError("canceled", "the session was closed", { object: this.#object }));
  }

  #collect(stream: Readable | null, buffer: MarkerBuffer): void {
    // A decoder per stream: a character cut in two by a read stays whole.
    const decoder = new StringDecoder("utf8");
    stream?.on("data", (chunk: Buffer) => {
      const text = decoder.write(chunk);
      if (buffer === this.#stderr) this.#noteStderr(text);
      buffer.push(text);
      this.#serve();
      if (this.#stdout.size + this.#stderr.size > MAX_UNREAD) {
        this.#end(new ProxyError("tool_failed", "too much output that is not read", { object: this.#object }));
      }
    });
  }

  #noteStderr(text: string): void {
    this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL);
  }

  #died(how: string): ProxyError {
    const said = this.#stderrTail.trim();
    return new ProxyError("tool_failed", `the child ended (${how})${said === "" ? "" : `, last words: ${said}`}`, { object: this.#object });
  }

  #serve(): void {
    if (this.#ended !== undefined) return this.#serveLast(this.#ended);
    const marker = this.#readers[0]?.marker;
    if (this.#isAnswering || marker === undefined || this.#holder(marker) === undefined) return;
    // Two streams, two reads: what the child printed on the other one before the marker is already in the pipe, and is
    // read in the coming turn of the event loop at the latest.
    this.#isAnswering = true;
    setImmediate(() => setImmediate(() => this.#answerReader()));
  }

  #answerReader(): void {
    this.#isAnswering = false;
    const reader = this.#readers[0];
    const text = reader && this.#extract(reader.marker);
    if (reader !== undefined && text !== undefined) this.#answer(reader, text);
    this.#serve();
  }

  /** Nothing more will come: answer what can be answered, refuse the rest. */
  #serveLast(reason: ProxyError): void {
    for (let reader = this.#readers[0]; reader !== undefined; reader = this.#readers[0]) {
      this.#answer(reader, this.#extract(reader.marker) ?? reason);
    }
  }

  #answer(reader: Reader, answer: string | ProxyError): void {
    this.#readers.shift();
    clearTimeout(reader.timer);
    if (typeof answer === "string") reader.resolve(answer);
    else reader.reject(answer);
  }

  #holder(marker: string): MarkerBuffer | undefined {
    return [this.#stdout, this.#stderr].find((buffer) => buffer.holds(marker));
  }

  #extract(marker: string): string | undefined {
    const holder = this.#holder(marker);
    const other = holder === this.#stdout ? this.#stderr : this.#stdout;
    return holder && other.extractAll() + (holder.extract(marker) ?? "");
  }

  // The first reason stays. SIGKILL because nothing else is sure; Node reaps the child, so there is no zombie.
  #end(reason: ProxyError): void {
    this.#ended ??= reason;
    this.#child?.kill("SIGKILL");
    this.#child?.stdin?.destroy();
    this.#child?.stdout?.destroy();
    this.#child?.stderr?.destroy();
    this.#serve();
  }
}
