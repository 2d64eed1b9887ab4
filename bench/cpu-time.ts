import { readdirSync, readFileSync } from "node:fs";
import { childrenOf, readProc, treeOf } from "./memory-sampler.ts";

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
  return treeOf(pid, childrenOf).reduce((sum, one) => sum + ticksOf(readProc(`${one}/stat`)), 0) * TICK_MS;
}

/** utime, stime and those of children that were waited for; 0 for a process that has ended. @source proc_pid_stat(5) */
function ticksOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index] ?? 0), 0);
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
  const found = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && readProc(`${name}/comm`).startsWith("ksoftirqd/"));
  if (found.length === 0) throw new Error("ksoftirqd can't be seen here, and its CPU time is part of what is measured");
  return found.map(Number);
}

/** Time on a CPU, in the text of a schedstat: its first number. */
function runNs(schedstat: string): number {
  return Number(schedstat.split(" ")[0]);
}
