import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";

/** Read a kernel parameter by its dotted name, with the program `sysctl`; undefined where this kernel or namespace has none of that name. */
export async function readParameter(exec: Exec, name: string, signal: AbortSignal): Promise<string | undefined> {
  const { code, stdout } = await exec.run("sysctl", ["-n", name], { signal });
  return code === 0 ? stdout.trim() : undefined;
}

/** Read several kernel parameters by their dotted names, in one run of `sysctl`; those that this kernel or namespace lacks are missing. */
export async function readParameters(exec: Exec, names: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await exec.run("sysctl", ["-e", ...names], { signal });
  return new Map([...stdout.matchAll(/^(\S+) = (.*)$/gm)].map(([, name = "", value = ""]) => [name, value.trim()]));
}

/**
 * Set a kernel parameter by its dotted name, with the program `sysctl`.
 *
 * Edges: what has that value already is set, also where /proc/sys is read-only.
 * @throws {ProxyError} `tool_failed` when that is refused.
 */
export async function setParameter(exec: Exec, name: string, value: string, signal: AbortSignal): Promise<void> {
  const { code, stderr } = await exec.run("sysctl", ["-q", "-w", `${name}=${value}`], { signal });
  if (code === 0) return;
  // Asked only now: writing is what succeeds nearly always.
  if ((await readParameter(exec, name, signal)) === value) return;
  const object = `${name}: ${stderr.trim().slice(0, 200)}`;
  throw new ProxyError("tool_failed", "a kernel parameter can't be set", { object, hint: "run with /proc/sys writable" });
}
