import { constants } from "node:os";
import { ProxyError } from "@turnout/core";
import type { ErrorCode, ErrorDetails } from "@turnout/core";

/** Number of a system error by its name, e.g. `errno("ENOENT")` is 2. */
export function errno(name: keyof typeof constants.errno): number {
  return constants.errno[name];
}

const CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [errno("ENOENT"), "not_found"],
  [errno("EEXIST"), "already_exists"],
  [errno("EPERM"), "permission_denied"],
  [errno("EACCES"), "permission_denied"],
  [errno("EOPNOTSUPP"), "host_unsupported"],
  [errno("EPROTONOSUPPORT"), "host_unsupported"],
  [errno("EAFNOSUPPORT"), "host_unsupported"],
  [errno("ENOSYS"), "host_unsupported"],
]);

/** Name a system error by its number, e.g. `ENOENT`; a number nobody knows stays a number. */
export function errnoName(value: number): string {
  return Object.entries(constants.errno).find(([, number]) => number === value)?.[0] ?? `errno ${value}`;
}

/** Put the kernel's refusal into a {@link ProxyError}; the code comes from a table, `tool_failed` when nothing fits. */
export function kernelError(value: number, what: string, details: ErrorDetails = {}): ProxyError {
  const code = CODES.get(value) ?? "tool_failed";
  const hint = code === "permission_denied" ? "run as root or with CAP_NET_ADMIN" : undefined;
  return new ProxyError(code, `${what} (${errnoName(value)})`, { ...(hint === undefined ? {} : { hint }), ...details });
}
