import { leftoversAmong, namespaceNames, removeNamespaces, startTicksOf } from "./namespaces.ts";
import { cgroupNames, removeCgroups } from "./node-cgroup.ts";

/**
 * Remove the namespaces and cgroups that dead laboratory processes left behind, with whatever still runs in them.
 * @returns the names of the namespaces removed.
 */
export function sweepLeftovers(): readonly string[] {
  const leftovers = leftoversAmong(namespaceNames(), startTicksOf);
  removeNamespaces(leftovers);
  removeCgroups(leftoversAmong(cgroupNames(), startTicksOf));
  return leftovers;
}
