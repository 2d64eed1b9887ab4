import type { Log } from "@turnout/core";
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
  for (const [code, settings] of left) if (code !== "ENOENT") tellLeft(settings, code, log);
  return left.get("ENOENT") ?? [];
}

/** Set what {@link setHost} found no file for, now that conntrack may be there; say what is still missing. */
export function setMissing(missing: readonly HostSetting[], files: HostFiles, log: Log): void {
  const left = missing.length === 0 ? [] : setHost(missing, files, log);
  if (left.length > 0) tellLeft(left, "ENOENT", log);
}

function tellLeft(settings: readonly HostSetting[], code: string, log: Log): void {
  const wanted = settings.map(({ name, value }) => `${name}=${value}`).join(", ");
  log.warn("host settings are left as they are", { wanted, error: code, hint: HINTS[code] ?? "see the manual of this error" });
}

/** Anything but a failed system call is a defect. */
function systemCode(error: unknown): string {
  if (error instanceof Error && "syscall" in error && "code" in error && typeof error.code === "string") return error.code;
  throw error;
}
