import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult } from "@turnout/core";
import { startedLater } from "./started-later.ts";

/** One expected `run`, or `open` whose input comes later. */
export interface FakeRun {
  /** Program and arguments. */
  readonly run: readonly string[];
  /** What must come on stdin; absent: no input must come, so that it is no `open`. */
  readonly input?: string;
  /** What it leaves; what isn't given is code 0 and no text. */
  readonly result?: Partial<ExecResult>;
  /** Throw this instead. */
  readonly error?: ProxyError;
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
export function createFakeExec(script: readonly FakeRun[]): FakeExec {
  let at = 0;
  const expected = (): string => (at < script.length ? JSON.stringify(script[at]) : "nothing more");
  const execute = (call: FakeRun, signal: AbortSignal | undefined): ExecResult => {
    const step = script[at];
    if (step === undefined || !isSame(step.run, call.run) || step.input !== call.input) {
      throw new Error(`unexpected call: ${JSON.stringify(call)}, expected: ${expected()}`);
    }
    if (signal?.aborted === true) throw new ProxyError("canceled", "the command was given up", { object: call.run.join(" ") });
    at++;
    if (step.error !== undefined) throw step.error;
    return { code: 0, stdout: "", stderr: "", ...step.result };
  };
  const run = (file: string, args: readonly string[], { input, signal }: ExecOptions = {}): Promise<ExecResult> => {
    const call: FakeRun = input === undefined ? { run: [file, ...args] } : { run: [file, ...args], input };
    return new Promise((resolve) => resolve(execute(call, signal)));
  };
  return {
    run,
    open: (file, args) => startedLater(run, file, args),
    done(): void {
      if (at < script.length) throw new Error(`${script.length - at} expected calls did not come, next: ${expected()}`);
    },
  };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}
