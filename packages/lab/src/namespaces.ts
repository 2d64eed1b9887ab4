import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, openSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
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

/** Pick, by their names, what of the laboratory's has an owner who is gone. Pure: `startOf` gives a live process's start time. */
export function leftoversAmong(names: readonly string[], startOf: (pid: number) => number | undefined): readonly string[] {
  return names.filter((name) => {
    const owner = ownerOf(name);
    return owner !== undefined && startOf(owner.pid) !== owner.startTicks;
  });
}

/** The owner that namespaces of this process get. */
export function thisOwner(): Owner {
  return { pid: process.pid, startTicks: startTicksOf(process.pid) ?? 0 };
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
  const held = hold(names);
  endProcessesIn(held);
  const input = names.map((name) => `netns delete ${name}\n`).join("");
  const result = spawnSync("ip", ["-force", "-batch", "-"], { input, encoding: "utf8" });
  // Once more, for the process that was just being started and entered meanwhile; now nobody else can.
  endProcessesIn(held);
  for (const { descriptor } of held) closeSync(descriptor);
  const present = new Set(namespaceNames());
  const stuck = names.filter((name) => present.has(name));
  if (stuck.length === 0) return;
  throw new ProxyError("tool_failed", "removing network namespaces", {
    object: stuck.join(" "),
    hint: result.stderr.trim(),
    cause: result.error,
  });
}

/** An open namespace: while it is, no other gets its number. */
interface HeldNamespace {
  readonly descriptor: number;
  /** As in /proc/PID/ns/net. */
  readonly link: string;
}

function hold(names: readonly string[]): readonly HeldNamespace[] {
  return names.flatMap((name) => {
    const descriptor = readIfPresent(() => openSync(`${NAMESPACE_DIRECTORY}/${name}`, "r"));
    return descriptor === undefined ? [] : [{ descriptor, link: `net:[${fstatSync(descriptor).ino}]` }];
  });
}

function endProcessesIn(held: readonly HeldNamespace[]): void {
  const links = new Set(held.map(({ link }) => link));
  const own = readIfPresent(() => readlinkSync("/proc/self/ns/net"));
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const namespace = readIfPresent(() => readlinkSync(`/proc/${entry}/ns/net`));
    // A half-made namespace file can be the host's own: whatever is in there is not ours to end.
    if (namespace === undefined || namespace === own || !links.has(namespace)) continue;
    readIfPresent(() => process.kill(Number(entry), "SIGKILL"));
  }
}

/** A live process's start time in clock ticks since boot; undefined: it is gone. */
export function startTicksOf(pid: number): number | undefined {
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
