import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { findBpfMounts } from "@turnout/host/bpf";
import { removeCgroupTrees } from "./cgroup-tree.ts";

/** What moves itself into a cgroup and goes on as another program. */
const ENTER = 'echo 0 >"$0" && exec "$@"';

/**
 * What keeps the mounts: it waits for the end of its input, so it goes with the process that started it, and the mounts go with the last process
 * that sees them. The cgroup's folder lies over the root of all.
 */
const KEEP = 'mount -t bpf bpf /sys/fs/bpf && mount --bind "$1" "$2" && echo ready && read -r _';

/**
 * Make what a node has that is a machine as far as cgroups and eBPF go: a cgroup (version 2) below that of this process, and a mount namespace with this
 * cgroup and a bpffs of its own at the usual places. Needs root.
 *
 * Edges: whoever makes one removes it with {@link removeCgroups}, also where this fails.
 * @returns the beginning of a command line that enters both; it ends with nsenter, so namespaces to enter beside follow, and the program.
 * @throws {ProxyError} `host_unsupported` without cgroup v2, `tool_failed`.
 */
export async function createNodeCgroup(name: string): Promise<readonly string[]> {
  const { root, own } = demandCgroups();
  const folder = join(own, name);
  mkdirSync(folder);
  const into = ["-c", ENTER, join(folder, "cgroup.procs")];
  const keeper = spawn("sh", [...into, "unshare", "--mount", "--propagation", "slave", "sh", "-c", KEEP, "sh", folder, root], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  // What it is told last is that its input has ended, which it may not hear any more.
  keeper.stdin.on("error", () => undefined);
  let complaint = "";
  keeper.stderr.on("data", (data: Buffer) => (complaint += data.toString()));
  await new Promise<void>((resolve, reject) => {
    const fail = (cause?: Error): void =>
      reject(new ProxyError("tool_failed", "making a node's mounts", { object: name, hint: complaint.trim(), cause }));
    keeper.stdout.once("data", () => resolve());
    keeper.once("error", fail);
    keeper.once("close", () => fail());
  });
  return ["sh", ...into, "nsenter", `--mount=/proc/${keeper.pid}/ns/mnt`];
}

/** The cgroups below that of this process; empty: there is no cgroup v2. */
export function cgroupNames(): readonly string[] {
  const own = findCgroups()?.own;
  if (own === undefined) return [];
  return readdirSync(own, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

/**
 * Remove cgroups of these names with all below them, and end every process in them; synchronous, so that an exit handler can do it.
 *
 * Edges: names that are already gone are fine.
 * @throws {ProxyError} `tool_failed` when a process does not end.
 */
export function removeCgroups(names: readonly string[]): void {
  const own = findCgroups()?.own;
  removeCgroupTrees(own === undefined ? [] : names.map((name) => join(own, name)));
}

/** Where cgroup v2 is mounted, and the folder of the cgroup that this process is in. */
function findCgroups(): { readonly root: string; readonly own: string } | undefined {
  const root = findBpfMounts().cgroup2;
  const path = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  return root === undefined || path === undefined ? undefined : { root, own: join(root, path) };
}

function demandCgroups(): { readonly root: string; readonly own: string } {
  const found = findCgroups();
  if (found !== undefined) return found;
  throw new ProxyError("host_unsupported", "cgroup v2 is not mounted", { hint: "mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified" });
}
