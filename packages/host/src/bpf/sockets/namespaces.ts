import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * List the network namespaces that can be seen from here, a path of each: those of processes, and those that have a name (`ip netns`).
 *
 * Edges: a container without the host's processes sees its own alone. What goes meanwhile is left out.
 */
export function listNetworkNamespaces(processes: string = "/proc", named: string = "/run/netns"): readonly string[] {
  const paths = [
    ...namesIn(processes)
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => join(processes, pid, "ns/net")),
    ...namesIn(named).map((name) => join(named, name)),
  ];
  const found = new Map<string, string>();
  for (const path of paths) {
    const number = numberOf(path);
    if (number !== undefined && !found.has(number)) found.set(number, path);
  }
  return [...found.values()];
}

/** Undefined: it is gone, or not ours to look at. */
function numberOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev} ${ino}`;
  } catch (error) {
    if (isUnseen(error)) return undefined;
    throw error;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isUnseen(error)) return [];
    throw error;
  }
}

function isUnseen(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ESRCH" || code === "EACCES" || code === "EPERM" || code === "ENOTDIR";
}
