import { ProxyError } from "@turnout/core";
import { installHint } from "./tool-packages.ts";

/** How much of stderr is kept for error messages, in UTF-16 code units. */
export const STDERR_TAIL = 2_000;

/** A command as one line for messages; long ones are cut. */
export function commandLine(file: string, args: readonly string[]): string {
  const line = [file, ...args].join(" ");
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}

/** Signals that end a program which did something wrong. */
const CRASHES: readonly string[] = ["SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"];

/** Whether a program that this signal ended has crashed. Pure. */
export function isCrash(signal: string): boolean {
  return CRASHES.includes(signal);
}

/** Say that a signal ended a program, as one line of its stderr, in the form in which tools report errors. Pure. */
export function signalText(file: string, signal: string): string {
  if (isCrash(signal)) return `Error: ${file} crashed (${signal}): install a newer version of it`;
  const why = signal === "SIGKILL" ? "another program or the kernel, which may lack memory (see dmesg)" : "another program";
  return `Error: ${file} was ended by ${signal}: ${why} sent it`;
}

/** Put a failed start into a {@link ProxyError}: ENOENT is `tool_missing`, EACCES and EPERM `permission_denied`, the rest `tool_failed`. */
export function startError(file: string, args: readonly string[], error: unknown): ProxyError {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  const object = commandLine(file, args);
  if (code === "ENOENT") return new ProxyError("tool_missing", `${file} is not installed`, { hint: installHint(file), cause: error });
  if (code === "EACCES" || code === "EPERM") {
    return new ProxyError("permission_denied", "the command may not be started", { object, hint: "run as root", cause: error });
  }
  return ProxyError.from(error, "tool_failed", "the command could not be started", { object });
}
