// How the programs are tried on a real kernel: in namespaces and a cgroup of their own, which are gone afterwards in any case.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const FLAGS = ["--conditions=@turnout/source", "--no-warnings"];

let count = 0;

/** What plays scenarios: a program of this folder, by default that of sockets in C alone; and what starts it, e.g. `setpriv` with its arguments. */
export interface Runner {
  readonly program?: "sockets-child.ts" | "packets-child.ts" | "module-child.ts" | "node-child.ts" | "conformance-child.ts";
  readonly before?: readonly string[];
  /** How long it may take at most. */
  readonly timeoutMs?: number;
}

/** Play a scenario with a compiled object, in fresh network and mount namespaces; gives what it printed, as JSON. */
export async function onStage(
  scenario: string,
  objectFile: string,
  { program = "sockets-child.ts", before = [], timeoutMs = 100_000 }: Runner = {},
): Promise<unknown> {
  const cgroup = `${ownCgroup()}/turnout-ebpf-test-${process.pid}-${(count += 1)}`;
  // All of its processes go with it: a pod of a scenario that was cut short does not stay.
  const child = fileURLToPath(new URL(program, import.meta.url));
  const args = [
    "-n",
    "-m",
    "-p",
    "-f",
    "--mount-proc",
    "--kill-child",
    ...before,
    process.execPath,
    ...FLAGS,
    child,
    scenario,
    cgroup,
    objectFile,
  ];
  try {
    const { stdout, stderr } = await promisify(execFile)("unshare", args, {
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      maxBuffer: 1 << 26,
    });
    if (stderr !== "") throw new Error(`a scenario prints nothing but what it saw: ${stderr}`);
    return JSON.parse(stdout);
  } finally {
    await removeCgroup(cgroup);
  }
}

/** The cgroup of version 2 that this process is in. */
export function ownCgroup(): string {
  const root = /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(readFileSync("/proc/self/mountinfo", "utf8"))?.[1];
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (root === undefined || own === undefined) throw new Error("cgroup v2 is mounted: needs(…) saw to it");
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
