import { readdirSync, readFileSync } from "node:fs";

/** Follows the resident memory of a process and everything it has started. Bytes. */
export interface MemorySampler {
  /** What the tree holds now. */
  now(): number;
  /** The most it held since the start, or since the last call. */
  resetPeak(): number;
  stop(): void;
}

/** Between two looks. */
export const SAMPLE_MS = 20;
const PAGE_BYTES = 4096;

/**
 * Sample a process tree every 20 ms.
 *
 * Edges: the sum of resident sizes counts pages that two processes share twice (libraries, a few MB), so it errs upwards;
 * a process that lives for less than 20 ms may be missed.
 */
export function sampleMemory(pid: number): MemorySampler {
  let peak = 0;
  const now = (): number => memoryNow(pid);
  const timer = setInterval(() => (peak = Math.max(peak, now())), SAMPLE_MS);
  return {
    now,
    resetPeak: () => {
      const value = Math.max(peak, now());
      peak = 0;
      return value;
    },
    stop: () => clearInterval(timer),
  };
}

/** What a process and everything it has started holds, bytes. */
export function memoryNow(pid: number): number {
  return treeOf(pid, childrenOf).reduce((sum, one) => sum + residentBytes(readProc(`${one}/statm`)), 0);
}

/** A process and all its descendants. Pure but for `children`. */
export function treeOf(pid: number, children: (pid: number) => readonly number[]): readonly number[] {
  return [pid, ...children(pid).flatMap((child) => treeOf(child, children))];
}

/** Resident bytes in the text of /proc/PID/statm (pages: total, resident, …); 0 for a process that is gone. */
export function residentBytes(statm: string): number {
  return Number(statm.split(" ")[1] ?? 0) * PAGE_BYTES;
}

/** Children of a process, of all its threads. */
export function childrenOf(pid: number): readonly number[] {
  return tasksOf(pid).flatMap((task) =>
    readProc(`${pid}/task/${task}/children`)
      .split(" ")
      .filter((text) => text !== "")
      .map(Number),
  );
}

function tasksOf(pid: number): readonly string[] {
  return orIfGone(() => readdirSync(`/proc/${pid}/task`), []);
}

/** A file of /proc; empty for a process that is gone. */
export function readProc(path: string): string {
  return orIfGone(() => readFileSync(`/proc/${path}`, "utf8"), "");
}

/** Processes end while they are being looked at. */
function orIfGone<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return otherwise;
    throw error;
  }
}
