import type { SurveyFiles } from "./files.ts";

/** A process that was looked for. */
export interface FoundProcess {
  readonly pid: number;
  /** As the kernel calls it: 15 characters at most. */
  readonly name: string;
  /** What it was started with, cut after 4,000 characters. */
  readonly command: string;
  /** The process that started it. */
  readonly parent: number;
  /** It was stopped (SIGSTOP), and does nothing until it is told to go on. */
  readonly isStopped: boolean;
}

const COMMAND_MAX = 4_000;

/** The first PID namespace, which sees all others. @source linux/proc_ns.h PROC_PID_INIT_INO */
const ALL_PROCESSES = "pid:[4026531836]";

/** Tell whether /proc shows all processes of this host, not those of a container alone. */
export async function seesAllProcesses({ link }: Pick<SurveyFiles, "link">): Promise<boolean> {
  return (await link("/proc/self/ns/pid")) === ALL_PROCESSES;
}

/**
 * Find processes by their names in this process's network namespace.
 *
 * Edges: empty of those whose network namespace may not be seen: other users' without root; and where /proc shows this container's processes alone.
 */
export async function findProcesses(isWanted: (name: string) => boolean, files: SurveyFiles): Promise<readonly FoundProcess[]> {
  const here = await files.link("/proc/self/ns/net");
  const found: FoundProcess[] = [];
  for (const pid of (await files.list("/proc")).filter((name) => /^\d+$/.test(name))) {
    const name = (await files.read(`/proc/${pid}/comm`))?.trim();
    if (name === undefined || !isWanted(name) || (await files.link(`/proc/${pid}/ns/net`)) !== here) continue;
    const command = (await files.read(`/proc/${pid}/cmdline`)) ?? "";
    const status = (await files.read(`/proc/${pid}/status`)) ?? "";
    const parent = Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1] ?? "0");
    const isStopped = /^State:\s*T/m.test(status);
    found.push({ pid: Number(pid), name, command: command.replaceAll("\0", " ").trim().slice(0, COMMAND_MAX), parent, isStopped });
  }
  return found;
}
