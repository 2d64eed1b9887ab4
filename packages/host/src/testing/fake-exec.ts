import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult, ExecSession } from "@turnout/core";

/** One expected `run`. */
export interface FakeRun {
  /** Program and arguments. */
  readonly run: readonly string[];
  /** What must come on stdin; absent: no input must come. */
  readonly input?: string;
  /** What it leaves; what isn't given is code 0 and no text. */
  readonly result?: Partial<ExecResult>;
  /** Throw this instead. */
  readonly error?: ProxyError;
}

/** One expected `open`. */
export interface FakeOpen {
  /** Program and arguments. */
  readonly open: readonly string[];
  /** Called with each text written; what it gives is printed. Undefined ends the child. */
  readonly reply: (written: string) => string | undefined;
}

/** An {@link Exec} that accepts exactly the calls of its script, in order. */
export interface FakeExec extends Exec {
  /** Check that the whole script was played. @throws {Error} naming the calls that did not come. */
  done(): void;
}

/**
 * Make a {@link FakeExec}.
 *
 * Edges: a call that the script doesn't expect next throws an Error, not a ProxyError, so that no code under test
 * takes it for a failing tool. Limits are not played: script the error they would give.
 */
export function createFakeExec(script: readonly (FakeRun | FakeOpen)[]): FakeExec {
  let at = 0;
  const expected = (): string => (at < script.length ? JSON.stringify(script[at]) : "nothing more");
  return {
    run(file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
      return new Promise((resolve) => {
        const step = script[at];
        const call: FakeRun = options.input === undefined ? { run: [file, ...args] } : { run: [file, ...args], input: options.input };
        if (step === undefined || !("run" in step) || !isSame(step.run, call.run) || step.input !== call.input) {
          throw new Error(`unexpected call: ${JSON.stringify(call)}, expected: ${expected()}`);
        }
        if (options.signal?.aborted === true) throw new ProxyError("canceled", "the command was given up", { object: call.run.join(" ") });
        at++;
        if (step.error !== undefined) throw step.error;
        resolve({ code: 0, stdout: "", stderr: "", ...step.result });
      });
    },
    open(file: string, args: readonly string[]): ExecSession {
      const step = script[at];
      if (step === undefined || !("open" in step) || !isSame(step.open, [file, ...args])) {
        throw new Error(`unexpected open: ${JSON.stringify([file, ...args])}, expected: ${expected()}`);
      }
      at++;
      return new FakeSession(step);
    },
    done(): void {
      if (at < script.length) throw new Error(`${script.length - at} expected calls did not come, next: ${expected()}`);
    },
  };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

class FakeSession implements ExecSession {
  readonly pid = 4242;
  readonly #step: FakeOpen;
  #printed = "";
  #ended: ProxyError | undefined;

  constructor(step: FakeOpen) {
    this.#step = step;
  }

  write(text: string): void {
    if (this.#ended !== undefined) return;
    const reply = this.#step.reply(text);
    if (reply === undefined)
      this.#ended = new ProxyError("tool_failed", "the child ended (exit code 1)", { object: this.#step.open.join(" ") });
    else this.#printed += reply;
  }

  readUntil(marker: string, timeoutMs: number): Promise<string> {
    const at = this.#printed.indexOf(marker);
    if (at >= 0) {
      const text = this.#printed.slice(0, at + marker.length);
      this.#printed = this.#printed.slice(text.length);
      return Promise.resolve(text);
    }
    // All answers are there at once, so what isn't there will never come.
    return Promise.reject(
      this.#ended ?? new ProxyError("timed_out", `no answer within ${timeoutMs} ms`, { object: this.#step.open.join(" ") }),
    );
  }

  close(): void {
    this.#ended ??= new ProxyError("canceled", "the session was closed", { object: this.#step.open.join(" ") });
  }
}
