/** What went wrong around a program, not in it: the words that Turnout's own errors begin with. */
export type VmErrorCode = "canceled" | "host_unsupported" | "timed_out" | "tool_failed" | "tool_missing";

/** A guest that could not be booted, or did not carry its program to the end. The message is one line: code, what, detail. */
export class VmError extends Error {
  readonly code: VmErrorCode;

  constructor(code: VmErrorCode, what: string, detail: string) {
    super(`[${code}] ${what}: ${detail}`);
    this.code = code;
  }
}
