// How programs are tried on this kernel: by a process in namespaces and a cgroup of its own, which are gone afterwards in any case.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ProxyError } from "@turnout/core/backend";

/** Sources are run as they are, and what was built as it was built. */
const FLAGS = import.meta.url.endsWith(".ts") ? ["--conditions=@turnout/source", "--no-warnings"] : [];

let count = 0;

/** A program that is run in namespaces of its own. */
export interface Isolated {
  /** Its path. */
  readonly program: string;
  /** What it is given; the first argument it gets is the path of a cgroup that it may make. */
  readonly args: readonly string[];
  /** What starts it, e.g. `setpriv` with its arguments. */
  readonly before?: readonly string[];
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Run a program in fresh network, mount and process namespaces; gives what it printed, as JSON. @throws {Error} what it complained of. */
export async function inNamespaces({ program, args, before = [], timeoutMs, signal }: Isolated): Promise<unknown> {
  const cgroup = `${ownCgroup()}/turnout-ebpf-test-${process.pid}-${(count += 1)}`;
  // All of its processes go with it: a pod of a scenario that was cut short does not stay.
  const namespaces = ["-n", "-m", "-p", "-f", "--mount-proc", "--kill-child"];
  try {
    const { stdout, stderr } = await promisify(execFile)(
      "unshare",
      [...namespaces, ...before, process.execPath, ...FLAGS, program, cgroup, ...args],
      { timeout: timeoutMs, killSignal: "SIGKILL", maxBuffer: 1 << 28, ...(signal === undefined ? {} : { signal }) },
    );
    if (stderr !== "") throw new Error(`a scenario prints nothing but what it saw: ${stderr}`);
    return JSON.parse(stdout);
  } finally {
    await removeCgroup(cgroup);
  }
}

/** The cgroup of version 2 that this process is in. @throws {ProxyError} `host_unsupported` where there is none. */
export function ownCgroup(): string {
  const root = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(readFileSync("/proc/self/mountinfo", "utf8"))?.[1];
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (root === undefined || own === undefined) throw new ProxyError("host_unsupported", "cgroup v2 is not mounted");
  return `${root}${own}`.replace(/\/+$/, "");
}

/** A cgroup can be removed once the last of its processes is no more; those below it go first. */
async function removeCgroup(path: string): Promise<void> {
  for (let left = 100; existsSync(path); left -= 1) {
    try {
      for (const entry of readdirSync(path, { withFileTypes: true })) if (entry.isDirectory()) await removeCgroup(`${path}/${entry.name}`);
      rmdirSync(path);
    } catch (error) {
      if (left === 0) throw error;
      await sleep(50);
    }
  }
}
