import { readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/**
 * Remove a cgroup, of either version, and all below it: the kernel removes only empty ones.
 * @throws what node:fs throws: `EBUSY` while a process is in one of them, `ENOENT` when one is gone already.
 */
export function removeCgroupTree(folder: string): void {
  // Its files are the kernel's, and go with it.
  for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) removeCgroupTree(join(folder, entry.name));
  rmdirSync(folder);
}
