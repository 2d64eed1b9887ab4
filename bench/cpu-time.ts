import { readdirSync, readFileSync } from "node:fs";

/** The kernel counts children's time in ticks of this length, whatever its own timer does. */
const TICK_MS = 10;

/**
 * CPU time this process and its children that have ended have used so far, ms (children's in steps of 10).
 * Unlike time by the clock it hardly suffers from neighbours that want the same CPUs.
 */
export function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + childTicks(readFileSync("/proc/self/stat", "utf8")) * TICK_MS;
}

/** Ticks of ended children in the text of /proc/PID/stat: cutime and cstime, counted after the name, which may hold spaces. Pure. */
export function childTicks(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[13]) + Number(fields[14]);
}

/** CPU time of a process, of its descendants that live, and of those that have ended and were waited for, so far, ms in steps of 10. */
export function treeTimeMs(pid: number): number {
  const stats = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)) ?? []);
  const within = new Set([pid]);
  // A child may have a smaller number than its parent, so this goes on until nothing is found.
  for (let size = 0; size !== within.size;) {
    size = within.size;
    for (const one of stats) if (within.has(one.parent)) within.add(one.pid);
  }
  return stats.filter((one) => within.has(one.pid)).reduce((sum, { ticks }) => sum + ticks, 0) * TICK_MS;
}

/** Undefined: it has ended. */
function statOf(pid: number): { readonly pid: number; readonly parent: number; readonly ticks: number } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // utime, stime and those of children that were waited for. @source proc_pid_stat(5)
  return { pid, parent: Number(fields[1]), ticks: [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0) };
}

/** CPU time of a process's threads so far, µs; it counts up to the last time that each of them began to wait or was interrupted. */
export function threadsTimeUs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + runNs(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8")), 0) / 1000;
}

/**
 * The kernel's threads that take over packets where there are too many for whoever sent them: ksoftirqd, one for each CPU.
 * @throws {Error} when they can't be seen, as in a container.
 */
export function softirqThreads(): readonly number[] {
  const found = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && commandOf(name).startsWith("ksoftirqd/"));
  if (found.length === 0) throw new Error("ksoftirqd can't be seen here, and its CPU time is part of what is measured");
  return found.map(Number);
}

/** Empty for a process that has ended meanwhile. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return "";
    throw error;
  }
}

/** Time on a CPU, in the text of a schedstat: its first number. */
function runNs(schedstat: string): number {
  return Number(schedstat.split(" ")[0]);
}
