import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createExec } from "@turnout/host";
import { createApiServer } from "@turnout/lab";
import type { ProxySync, SyncLog } from "../kube-proxy/sync-log.ts";
import { inFolder } from "../folder.ts";
import { memoryNow } from "../memory-sampler.ts";
import { STRIDE } from "./backend-run.ts";
import { HOST_PROXIES, startKind } from "../proxies.ts";
import type { HostProxy, ProxyPlace } from "../proxies.ts";
import { endOf } from "../role-process.ts";
import { NODE_NAME, objectsOf, POD_CIDR, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";

/** What is put through what. */
export interface RivalParameters {
  readonly proxy: HostProxy;
  readonly shape: Shape;
  readonly changes: number;
}

/** What came of it; times in ms. */
export interface RivalRun {
  /** How long was waited for the first sync; when it did not come there is nothing else. */
  readonly limitMs: number;
  /** From the start of the process to IPv4 rules in force. */
  readonly startMs?: number;
  /** Its own word for the first sync: lists complete to rules in force. */
  readonly firstSyncMs?: number;
  /** From the write at the API server to rules in force, each after quiet. */
  readonly changeMs: readonly number[];
  /** Resident memory of the process tree after the changes, bytes. */
  readonly memoryBytes: number;
  /** Load average of the last minute before. */
  readonly load: number;
}

/** Both wait a second between two syncs by default; what is measured comes after quiet. */
const PAUSE_MS = 1_300;
const QUIET_MS = 5_000;
/** Whoever has nothing in force after this long is given up. */
const LIMIT_MS = 600_000;

/** Run a proxy as a process against an API server emulator in this namespace, from nothing to everything in force, then change endpoints. */
export async function rival({ proxy: name, shape, changes }: RivalParameters): Promise<RivalRun> {
  const [load = 0] = loadavg();
  await createExec().run("ip", ["link", "set", "lo", "up"]);
  return await inFolder(async (folder) => await measured(folder, { proxy: name, shape, changes }, load));
}

async function measured(folder: string, { proxy: name, shape, changes }: RivalParameters, load: number): Promise<RivalRun> {
  const server = await createApiServer();
  let child: ChildProcess | undefined;
  // With the tools that it starts, which are ended with it: one of them may have work for minutes.
  const spawnHere: ProxyPlace["node"]["spawn"] = (file, args, options = {}) =>
    (child = spawn(file, args, { ...options, env: { ...process.env, ...options.env }, detached: true }));
  try {
    for (const object of objectsOf(shape)) server.apply(object);
    const kubeconfig = join(folder, "kubeconfig");
    await writeFile(kubeconfig, server.kubeconfig());
    const kind = HOST_PROXIES[name];
    const verbose = kind.program === "turnout" ? { ...kind, flags: [...kind.flags, "-v", "4"] } : kind;
    const startMs = performance.now();
    const starting = startKind(verbose, {
      node: { name: NODE_NAME, spawn: spawnHere },
      kubeconfig,
      clusterCIDR: POD_CIDR,
      folder,
      kubeProxy: process.env["KUBE_PROXY"] ?? "kube-proxy",
      rows: shape.services,
    });
    const running = await Promise.race([starting, sleep(LIMIT_MS, undefined, { ref: false })]);
    if (running === undefined) {
      // It will be told that the program ended.
      starting.catch((error: unknown) => process.stderr.write(`given up: ${String(error).slice(0, 200)}\n`));
      return { limitMs: LIMIT_MS, load, changeMs: [], memoryBytes: memoryNow(child?.pid ?? 0) };
    }
    await sleep(QUIET_MS);
    const changeMs: number[] = [];
    for (let k = 0; k < changes; k++) {
      await sleep(PAUSE_MS);
      const writtenMs = performance.now();
      server.apply(sliceObject((k * STRIDE) % shape.services, shape, { missing: k % shape.endpoints }));
      changeMs.push((await nextOf(running.log, writtenMs)).atMs - writtenMs);
    }
    const first = running.first.find(({ family }) => family === "IPv4");
    const times = first === undefined ? {} : { startMs: first.atMs - startMs, firstSyncMs: first.elapsedMs };
    return { limitMs: LIMIT_MS, load, ...times, changeMs, memoryBytes: memoryNow(child?.pid ?? 0) };
  } finally {
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = endOf(child);
      process.kill(-child.pid, "SIGKILL");
      await ended;
    }
    await server.close();
  }
}

/** The IPv4 sync that follows a moment; others (the other family, or one that was under way) are passed over. */
async function nextOf(log: SyncLog, afterMs: number): Promise<ProxySync> {
  for (;;) {
    const sync = await log.next();
    if (sync.family === "IPv4" && sync.atMs > afterMs) return sync;
  }
}
