import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { ProxyError } from "@turnout/core";

/** Who made a namespace: a process, told apart from a later one with the same pid by its start time (clock ticks since boot). */
export interface Owner {
  readonly pid: number;
  readonly startTicks: number;
}

const NAMESPACE_DIRECTORY = "/run/netns";
const NAME = /^tl-(\d+)\.([0-9a-z]+)-(\d+)-(.+)$/;

/** Name a namespace so that its owner can be told from it: `tl-<pid>.<start>-<serial>-<place>`. Pure. */
export function namespaceName(owner: Owner, serial: number, place: string): string {
  return `tl-${owner.pid}.${owner.startTicks.toString(36)}-${serial}-${place}`;
}

/** Tell who made a namespace by its name; undefined when the laboratory did not. Pure. */
export function ownerOf(namespace: string): Owner | undefined {
  const match = NAME.exec(namespace);
  if (match === null) return undefined;
  return { pid: Number(match[1]), startTicks: Number.parseInt(match[2] ?? "", 36) };
}

/** Pick the laboratory's namespaces whose owner is gone. Pure: `startOf` gives a live process's start time. */
export function leftoversAmong(namespaces: readonly string[], startOf: (pid: number) => number | undefined): readonly string[] {
  return namespaces.filter((name) => {
    const owner = ownerOf(name);
    return owner !== undefined && startOf(owner.pid) !== owner.startTicks;
  });
}

/** The owner that namespaces of this process get. */
export function thisOwner(): Owner {
  return { pid: process.pid, startTicks: startTicksOf(process.pid) ?? 0 };
}

/**
 * Remove the namespaces that dead laboratory processes left behind, with whatever still runs in them.
 * @returns the names removed.
 */
export function sweepLeftovers(): readonly string[] {
  const leftovers = leftoversAmong(namespaceNames(), startTicksOf);
  removeNamespaces(leftovers);
  return leftovers;
}

/** The named network namespaces of this machine. */
export function namespaceNames(): readonly string[] {
  return readIfPresent(() => readdirSync(NAMESPACE_DIRECTORY)) ?? [];
}

/**
 * Remove namespaces and end every process in them; synchronous, so that an exit handler can do it.
 *
 * Edges: names that are already gone are fine; an empty list does nothing.
 * @throws {ProxyError} `tool_failed` when one is still there afterwards.
 */
export function removeNamespaces(names: readonly string[]): void {
  if (names.length === 0) return;
  endProcessesIn(names);
  const input = names.map((name) => `netns delete ${name}\n`).join("");
  const result = spawnSync("ip", ["-force", "-batch", "-"], { input, encoding: "utf8" });
  const present = new Set(namespaceNames());
  const stuck = names.filter((name) => present.has(name));
  if (stuck.length === 0) return;
  throw new ProxyError("tool_failed", "removing network namespaces", {
    object: stuck.join(" "),
    hint: result.stderr.trim(),
    cause: result.error,
  });
}

function endProcessesIn(names: readonly string[]): void {
  const inodes = new Set<string>();
  for (const name of names) {
    const inode = readIfPresent(() => statSync(`${NAMESPACE_DIRECTORY}/${name}`).ino);
    if (inode !== undefined) inodes.add(`net:[${inode}]`);
  }
  const own = readIfPresent(() => readlinkSync("/proc/self/ns/net"));
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const namespace = readIfPresent(() => readlinkSync(`/proc/${entry}/ns/net`));
    // A half-made namespace file can be the host's own: whatever is in there is not ours to end.
    if (namespace === undefined || namespace === own || !inodes.has(namespace)) continue;
    readIfPresent(() => process.kill(Number(entry), "SIGKILL"));
  }
}

function startTicksOf(pid: number): number | undefined {
  const stat = readIfPresent(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // Field 22; counted after the command name, which may hold spaces and brackets itself.
  const field = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return field === undefined ? undefined : Number(field);
}

/** Run `read`; undefined when what it reads (or signals) has gone meanwhile, or is none of our business (another user's process). */
function readIfPresent<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ESRCH" || code === "ENOTDIR" || code === "EINVAL" || code === "EACCES") return undefined;
    throw error;
  }
}
