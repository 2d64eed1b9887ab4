import { existsSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";

/** For the last process of a cgroup to be gone, once it was killed. */
const END_MS = 10_000;
const POLL_AGAIN_MS = 5;
const IDLE = new Int32Array(new SharedArrayBuffer(4));

/**
 * Remove cgroups, of either version, with all below them; synchronous, so that an exit handler can do it. In those of version 2 every process is ended, in
 * those of version 1 they have been killed before.
 *
 * Edges: folders that are already gone are fine.
 * @throws {ProxyError} `tool_failed` when a process does not end within ten seconds.
 */
export function removeCgroupTrees(folders: readonly string[]): void {
  const untilMs = performance.now() + END_MS;
  for (const folder of folders.filter((one) => existsSync(one)))
    while (!isRemoved(folder, performance.now() > untilMs)) Atomics.wait(IDLE, 0, 0, POLL_AGAIN_MS);
}

function isRemoved(folder: string, isLast: boolean): boolean {
  const kill = join(folder, "cgroup.kill");
  try {
    // Every time: a process that was just being started comes in until there is no folder.
    if (existsSync(kill)) writeFileSync(kill, "1");
    removeTree(folder);
    return true;
  } catch (error) {
    // One below it may have gone by itself.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return !existsSync(folder);
    if (!isLast) return false;
    throw new ProxyError("tool_failed", "removing a cgroup", { object: folder, hint: "a process in it does not end", cause: error });
  }
}

/** The kernel removes only empty ones. */
function removeTree(folder: string): void {
  // Its files are the kernel's, and go with it.
  for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) removeTree(join(folder, entry.name));
  rmdirSync(folder);
}
