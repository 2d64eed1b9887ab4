import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createExec } from "@turnout/host";
import { createApiServer } from "@turnout/lab";
import { kubeProxyConfig, kubeProxySync } from "../kube-proxy/process.ts";
import type { KubeProxyMode } from "../kube-proxy/process.ts";
import { followSyncs } from "../kube-proxy/sync-log.ts";
import type { ProxySync, SyncLog } from "../kube-proxy/sync-log.ts";
import { placeTools } from "../kube-proxy/tools.ts";
import type { Variant } from "../kube-proxy/tools.ts";
import { sampleMemory } from "../memory-sampler.ts";
import { endOf, TURNOUT } from "../role-process.ts";
import { NODE_NAME, nodeObject, POD_CIDR, serviceCIDRObject, serviceObject, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { HOST_SETTINGS } from "./daemon.ts";

/** A program that is measured, as a user would start it. */
export type Rival =
  | { readonly program: "kube-proxy"; readonly binary: string; readonly mode: KubeProxyMode; readonly variant: Variant }
  | { readonly program: "turnout"; readonly backend: "nft" | "iptables"; readonly variant: Variant };

/** What it is put through. */
export interface RivalParameters {
  readonly rival: Rival;
  readonly shape: Shape;
  readonly changes: number;
}

/** What came of it; times in ms. */
export interface RivalRun {
  /** How long was waited for the first sync; when it did not come there is nothing else. */
  readonly limitMs: number;
  /** From the start of the process to IPv4 rules in force. */
  readonly startMs: number | undefined;
  /** Its own word for the first sync: lists complete to rules in force. */
  readonly firstSyncMs: number | undefined;
  /** From the write at the API server to rules in force, each after quiet. */
  readonly changeMs: readonly number[];
  /** Resident memory of the process tree after the changes, bytes. */
  readonly memoryBytes: number;
  /** Load average of the last minute before. */
  readonly load: number;
}

/** A prime, so that changes hit services all over the place. */
const STRIDE = 7919;
/** Both wait a second between two syncs by default; what is measured comes after quiet. */
const PAUSE_MS = 1_300;
const QUIET_MS = 5_000;
/** Whoever has nothing in force after this long is given up. */
const LIMIT_MS = 600_000;

/** Run a proxy as a process against an API server emulator in this namespace, from nothing to everything in force, then change endpoints. */
export async function rival({ rival: subject, shape, changes }: RivalParameters): Promise<RivalRun> {
  const [load = 0] = loadavg();
  await createExec().run("ip", ["link", "set", "lo", "up"]);
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const server = await createApiServer();
  try {
    for (const object of [nodeObject(), serviceCIDRObject()]) server.apply(object);
    for (let index = 0; index < shape.services; index++) {
      server.apply(serviceObject(index));
      server.apply(sliceObject(index, shape));
    }
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, server.kubeconfig());
    const start = await commandOf(subject, directory, kubeconfig);
    const startMs = performance.now();
    const child = start();
    const ended = endOf(child);
    try {
      const log = followSyncs(child, subject.program === "turnout" ? turnoutSync(shape) : kubeProxySync);
      const soon = nextOf(log, startMs);
      const first = await Promise.race([soon, sleep(LIMIT_MS, undefined, { ref: false })]);
      const common = { limitMs: LIMIT_MS, load };
      if (first === undefined) {
        // It will be told that the program ended.
        soon.catch((error: unknown) => process.stderr.write(`given up: ${String(error).slice(0, 200)}\n`));
        return { ...common, startMs: first, firstSyncMs: first, changeMs: [], memoryBytes: memoryOf(child) };
      }
      await sleep(QUIET_MS);
      const changeMs: number[] = [];
      for (let k = 0; k < changes; k++) {
        await sleep(PAUSE_MS);
        const writtenMs = performance.now();
        server.apply(sliceObject((k * STRIDE) % shape.services, shape, { missing: k % shape.endpoints }));
        changeMs.push((await nextOf(log, writtenMs)).atMs - writtenMs);
      }
      const memoryBytes = memoryOf(child);
      return { ...common, startMs: first.atMs - startMs, firstSyncMs: first.elapsedMs, changeMs, memoryBytes };
    } finally {
      // With the tools it has started: one of them may have work for minutes.
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
      await ended;
    }
  } finally {
    await server.close();
    await rm(directory, { recursive: true });
  }
}

function memoryOf(child: ChildProcess): number {
  const sampler = sampleMemory(child.pid ?? 0);
  const bytes = sampler.now();
  sampler.stop();
  return bytes;
}

/** The IPv4 sync that follows a moment; others (the other family, or one that was under way) are passed over. */
async function nextOf(log: SyncLog, afterMs: number): Promise<ProxySync> {
  for (;;) {
    const sync = await log.next();
    if (sync.family === "IPv4" && sync.atMs > afterMs) return sync;
  }
}

async function commandOf(subject: Rival, directory: string, kubeconfig: string): Promise<() => ChildProcess> {
  const env = { ...process.env, PATH: `${await placeTools(directory, subject.variant)}:${process.env["PATH"] ?? ""}` };
  const start = (file: string, args: readonly string[]) => (): ChildProcess =>
    spawn(file, args, { env, stdio: ["ignore", "inherit", "pipe"], detached: true });
  if (subject.program === "turnout") {
    const source = ["--source", "kube", "--kubeconfig", kubeconfig, "--node-name", NODE_NAME, "--cluster-cidr", POD_CIDR];
    return start(TURNOUT, ["run", "--backend", subject.backend, ...source, "--logging-format", "json", "-v", "4"]);
  }
  const config = join(directory, "config.json");
  const { mode, binary } = subject;
  await writeFile(config, kubeProxyConfig({ mode, nodeName: NODE_NAME, kubeconfig, fields: { clusterCIDR: POD_CIDR } }));
  return start(binary, ["--config", config]);
}

/** Read a line of Turnout's log. @throws {Error} on a warning, an error, or a first sync that lacks services: the run was disturbed. */
function turnoutSync({ services }: Shape): (line: string, atMs: number) => ProxySync | undefined {
  return (line, atMs) => {
    const entry = JSON.parse(line) as { msg?: string; family?: "IPv4" | "IPv6"; rows?: number; ms?: number; level?: string };
    if (entry.msg === HOST_SETTINGS) return undefined;
    if (entry.level !== "info" && entry.level !== "debug") throw new Error(`turnout said: ${line}`);
    if (entry.family === undefined || (entry.msg !== "first sync done" && entry.msg !== "synced")) return undefined;
    if (entry.family === "IPv4" && entry.rows !== services) throw new Error(`${entry.rows ?? 0} rows are in force instead of ${services}`);
    return { family: entry.family, elapsedMs: entry.ms ?? 0, atMs };
  };
}
