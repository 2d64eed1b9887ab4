import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult, FinishOptions, StartedCommand } from "@turnout/core";
import { Child } from "./child.ts";
import { commandLine } from "./exec-errors.ts";

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 2 ** 30;

/**
 * Make the real {@link Exec}: programs of this machine, never through a shell, always with LC_ALL=C.
 *
 * Edges: a child killed by a signal has code 128 + its number, as in a shell, and the last line of its stderr says so; of stderr the last MiB is kept.
 */
export function createExec(): Exec {
  return { run, open };
}

async function run(file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
  const { input, signal, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES } = options;
  if (signal?.aborted === true) throw canceled(commandLine(file, args), signal);
  const child = new Child(file, args, { hasInput: input !== undefined, maxOutputBytes });
  if (input !== undefined) child.give(input);
  return await ended(child, options);
}

function open(file: string, args: readonly string[]): StartedCommand {
  const child = new Child(file, args, { hasInput: true, maxOutputBytes: DEFAULT_MAX_OUTPUT_BYTES });
  return {
    finish(input, options = {}): Promise<ExecResult> {
      child.give(input);
      return ended(child, options);
    },
    pid: child.pid,
    close: () => child.stop(canceled(child.object)),
  };
}

/** Wait for a child's end, but no longer than its user wants to. */
async function ended(child: Child, { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: FinishOptions): Promise<ExecResult> {
  const onAbort = (): void => child.stop(canceled(child.object, signal));
  const timer = setTimeout(() => child.stop(timedOut(child, timeoutMs)), timeoutMs);
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted === true) onAbort();
  try {
    return await child.result();
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

function canceled(object: string, signal?: AbortSignal): ProxyError {
  return new ProxyError("canceled", "the command was given up", { object, cause: signal?.reason });
}

function timedOut({ object, lastWords }: Child, timeoutMs: number): ProxyError {
  const cause = lastWords === "" ? undefined : new Error(lastWords);
  return new ProxyError("timed_out", `no end after ${timeoutMs} ms, so it was killed`, { object, cause });
}
