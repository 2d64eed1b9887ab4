// How tests of the room bpf play a scenario: in namespaces and a cgroup of its own, which are gone afterwards in any case.
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeEach } from "vitest";
import { findMount, parseMounts } from "../bpf/mounts.ts";
import { enterCgroup } from "./bpf-scene.ts";

const FLAGS = ["--conditions=@turnout/source", "--no-warnings"];

/** What a scenario needs beside its namespaces. */
export interface StageOptions {
  /** What starts the program, e.g. `setpriv` with its arguments. */
  readonly before?: readonly string[];
  /** Have a cgroup of its own, below that of cgroup v2 that this process is in; its path is the program's second argument. */
  readonly hasCgroup?: boolean;
}

let count = 0;

/** Play a scenario of a program of this folder in fresh network and mount namespaces, which go with its process; gives what it printed, as JSON. */
export async function onStage(program: string, scenario: string, { before = [], hasCgroup = false }: StageOptions = {}): Promise<unknown> {
  const child = fileURLToPath(new URL(program, import.meta.url));
  const cgroup = hasCgroup ? `${ownCgroup()}/turnout-test-${process.pid}-${(count += 1)}` : "";
  const args = ["-n", "-m", ...before, process.execPath, ...FLAGS, child, scenario, cgroup];
  try {
    const { stdout, stderr } = await promisify(execFile)("unshare", args, { timeout: 100_000, killSignal: "SIGKILL" });
    if (stderr !== "") throw new Error(`a scenario prints nothing but what it saw, libbpf neither: ${stderr}`);
    return JSON.parse(stdout);
  } finally {
    if (cgroup !== "") await removeCgroup(cgroup);
  }
}

/** Have each test of a `describe` in a cgroup of its own, with this process and what it starts; gives its path. */
export function inOwnCgroup(): () => string {
  let path = "";
  beforeEach(() => {
    const home = ownCgroup();
    path = enterCgroup(`${home}/turnout-test-${process.pid}-${(count += 1)}`);
    return async () => {
      writeFileSync(`${home}/cgroup.procs`, String(process.pid));
      await removeCgroup(path);
    };
  });
  return () => path;
}

function ownCgroup(): string {
  const root = findMount(parseMounts(readFileSync("/proc/self/mountinfo", "utf8")), "cgroup2", "/sys/fs/cgroup");
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (root === undefined || own === undefined) throw new Error("cgroup v2 is mounted: needs(…) saw to it");
  return `${root}${own}`.replace(/\/+$/, "");
}

/** A cgroup can be removed once the last of its processes is no more. */
async function removeCgroup(path: string): Promise<void> {
  for (let left = 100; existsSync(path); left -= 1) {
    try {
      rmdirSync(path);
    } catch (error) {
      if (left === 0) throw error;
      await sleep(50);
    }
  }
}
