// What the scenarios of the module share: what is pinned in their mount namespace, and what is in it.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createBpf } from "@turnout/host/bpf";
import type { Bpf, BpfMap } from "@turnout/host/bpf";
import { furnish, serve } from "./clients.ts";
import { elementsIn } from "./proxy.ts";

/** The folder of all pins. */
export const ROOT = "/sys/fs/bpf/turnout";

/** eBPF beside the module. */
export const bpf: Bpf = createBpf();

/** A folder that goes with this mount namespace. */
export const SCRATCH = "/mnt";

/** Give this namespace what scenarios need, and go into the cgroup. */
export async function furnishAll(cgroup: string): Promise<void> {
  execFileSync("mount", ["-t", "bpf", "bpf", "/sys/fs/bpf"]);
  execFileSync("mount", ["-t", "tmpfs", "tmpfs", SCRATCH]);
  if (!existsSync(cgroup)) mkdirSync(cgroup);
  writeFileSync(`${cgroup}/cgroup.procs`, String(process.pid));
  furnish();
  await serve();
}

/** What is pinned, without digests. */
export function pinned(): readonly string[] {
  return bpf.pins(ROOT).map(({ path, kind }) => `${kind} ${path.slice(ROOT.length + 1).replaceAll(/[0-9a-f]{16}/g, "X")}`);
}

/** What rights folders and pins give, each once. */
export function modes(): readonly string[] {
  const below = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).map((name) => `${ROOT}/${name}`);
  const texts = [ROOT, ...below].map((path) => {
    const stats = statSync(path);
    return `${stats.isDirectory() ? "folder" : "pin"} ${(stats.mode & 0o777).toString(8)}`;
  });
  return [...new Set(texts)].toSorted();
}

/** A pinned map, by its name in C. */
export function map(name: string): BpfMap {
  const pin = bpf.pins(ROOT).find(({ path, kind }) => kind === "map" && path.endsWith(`/${name}`))?.path;
  if (pin === undefined) throw new Error(`no map ${name}`);
  return bpf.openMap({ pin });
}

/** All elements of a pinned map, as text. */
export function elements(name: string): Promise<readonly string[]> {
  return elementsIn(map(name));
}
