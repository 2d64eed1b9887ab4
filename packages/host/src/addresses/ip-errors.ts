import { ProxyError } from "@turnout/core";

/** Say what `ip` complained about; the first line is its reason. Pure. */
export function ipError(code: number, stderr: string, device: string): ProxyError {
  const [complaint = ""] = stderr.trim().split("\n");
  return new ProxyError("tool_failed", `ip failed with code ${code} (${complaint.slice(0, 200)})`, { object: device });
}

/** Whether `ip` was refused a device because the kernel knows no such kind. Pure. */
export function isUnknownKind(error: unknown): boolean {
  return (
    ProxyError.is(error, "tool_failed") && /\((?:Error: Unknown device type|RTNETLINK answers: Operation not supported)/.test(error.what)
  );
}
