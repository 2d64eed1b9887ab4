import { ProxyError, type Log } from "@turnout/core";
import type { HostFiles } from "./host-files.ts";
import { differs, type HostSetting } from "./host-settings.ts";

/** What the errors of system calls mean here. */
const HINTS: Readonly<Record<string, string>> = {
  ENOENT: "this kernel has none, or nf_conntrack is not loaded",
  EROFS: "/proc/sys or /sys is read-only, as in a container without privilege: run --init-only in one with privilege first",
  EACCES: "it takes the network namespace of the host, or more rights (for oom_score_adj CAP_SYS_RESOURCE)",
  EPERM: "it takes the network namespace of the host, or more rights (for oom_score_adj CAP_SYS_RESOURCE)",
  EOPNOTSUPP: "it takes the network namespace of the host",
};

/**
 * Write the files of the kernel that say something else than they should, as far as this process may.
 *
 * Shape: returns the settings whose file is not there: conntrack's appear when something loads it.
 * Edges: what was set is told in one line, and what can't be set in one line for each reason, but for files that aren't there.
 */
export function setHost(wanted: readonly HostSetting[], files: HostFiles, log: Log): readonly HostSetting[] {
  const left = writeSettings(wanted, files, log);
  for (const [code, settings] of left) if (code !== "ENOENT") reportLeft(settings, code, log);
  return left.get("ENOENT") ?? [];
}

/**
 * Write them as {@link setHost} does; `load` is called where files aren't there, to have the kernel load conntrack.
 * @throws {ProxyError} `permission_denied` or `host_unsupported` naming what can't be set, once all other files were.
 */
export async function demandHost(wanted: readonly HostSetting[], files: HostFiles, log: Log, load: () => Promise<void>): Promise<void> {
  const first = writeSettings(wanted, files, log);
  if (first.has("ENOENT")) await load();
  const left = first.size === 0 ? first : writeSettings([...first.values()].flat(), files, log);
  const [code] = left.keys();
  if (code === undefined) return;
  throw new ProxyError(code === "ENOENT" ? "host_unsupported" : "permission_denied", "host settings can't be set", {
    object: [...left].map(([reason, settings]) => `${namesOf(settings)} (${reason})`).join(", "),
    hint: `${HINTS[code] ?? "see the manual of this error"}; conntrack.maxPerCore: 0 and timeouts of 0s leave them as they are`,
  });
}

/** Gives what could not be written, by the error's code. */
function writeSettings(wanted: readonly HostSetting[], files: HostFiles, log: Log): ReadonlyMap<string, readonly HostSetting[]> {
  const set: string[] = [];
  const left = new Map<string, HostSetting[]>();
  for (const setting of wanted) {
    const { name, path, value } = setting;
    try {
      const before = files.read(path);
      if (!differs(setting, before)) continue;
      files.write(path, String(value));
      set.push(`${name} ${before} -> ${value}`);
    } catch (error) {
      const code = systemCode(error);
      left.set(code, [...(left.get(code) ?? []), setting]);
    }
  }
  if (set.length > 0) log.info("host settings were changed", { set: set.join(", ") });
  return left;
}

/** Set what {@link setHost} found no file for, now that conntrack may be there; say what is still missing. */
export function setMissing(missing: readonly HostSetting[], files: HostFiles, log: Log): void {
  const left = missing.length === 0 ? [] : setHost(missing, files, log);
  if (left.length > 0) reportLeft(left, "ENOENT", log);
}

function reportLeft(settings: readonly HostSetting[], code: string, log: Log): void {
  log.warn("host settings are left as they are", {
    wanted: namesOf(settings),
    error: code,
    hint: HINTS[code] ?? "see the manual of this error",
  });
}

function namesOf(settings: readonly HostSetting[]): string {
  return settings.map(({ name, value }) => `${name}=${value}`).join(", ");
}

/** Anything but a failed system call is a defect. */
function systemCode(error: unknown): string {
  if (error instanceof Error && "syscall" in error && "code" in error && typeof error.code === "string") return error.code;
  throw error;
}
