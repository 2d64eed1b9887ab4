import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createExec } from "@turnout/host";
import { inFolder } from "../folder.ts";
import { followSyncs } from "../kube-proxy/sync-log.ts";
import type { Harness } from "../line-channel.ts";
import { turnoutSync } from "../proxies.ts";
import { endOf, openRole, TURNOUT } from "../role-process.ts";
import { NODE_NAME, POD_CIDR } from "../workload.ts";
import type { Shape } from "../workload.ts";
import type { ProviderParameters } from "./providers.ts";

/** What the real command is put through. */
export interface DaemonParameters {
  readonly shape: Shape;
  /** Where it learns of services: an API server emulator, or a directory of files. */
  readonly source: "kube" | "file";
  readonly changes: number;
  readonly idleMs: number;
}

/** From the start of the process to rules in force, ms: Node's start, listing or reading, everything. */
export interface DaemonRun {
  readonly startMs: number;
}

const CHANGE_PAUSE_MS = 20;

/**
 * Run `turnout run` in this namespace, with an API server emulator or files beside it. Phases (with its pid): `started`, `in-force`,
 * `idle`, `changed`, `idle-again`.
 */
export async function daemon({ shape, source, changes, idleMs }: DaemonParameters, harness: Harness): Promise<DaemonRun> {
  await createExec().run("ip", ["link", "set", "lo", "up"]);
  return await inFolder(async (folder) => {
    const path = join(folder, source);
    const provided: ProviderParameters = { shape, path, changes, pauseMs: CHANGE_PAUSE_MS };
    const provider = openRole(source === "kube" ? "api-server" : "file-writer", provided, { namespace: "same" });
    let turnout: ReturnType<typeof spawn> | undefined;
    try {
      await provider.phase("provided");
      const where = source === "kube" ? ["--source", "kube", "--kubeconfig", path] : ["--source", `file:${path}`];
      const how = ["--backend", "nft", "--node-name", NODE_NAME, "--cluster-cidr", POD_CIDR, "--logging-format", "json"];
      const sinceMs = performance.now();
      turnout = spawn(TURNOUT, ["run", ...where, ...how], { stdio: ["ignore", "inherit", "pipe"] });
      const [ended, { pid = 0 }] = [endOf(turnout), turnout];
      const log = followSyncs(turnout, turnoutSync(new Set(), shape.services));
      await harness.reached("started", pid);
      while ((await log.next()).family !== "IPv4");
      const startMs = performance.now() - sinceMs;
      await harness.reached("in-force", pid);
      await sleep(idleMs);
      await harness.reached("idle", pid);
      provider.go();
      await provider.phase("changed");
      await harness.reached("changed", pid);
      await sleep(idleMs);
      await harness.reached("idle-again", pid);
      turnout.kill("SIGTERM");
      const end = await ended;
      if (end !== "exit code 0") throw new Error(`turnout ended with ${end}`);
      const failure = log.failure();
      if (failure !== undefined && !failure.message.startsWith("the proxy ended")) throw failure;
      return { startMs };
    } finally {
      turnout?.kill("SIGKILL");
      provider.kill();
    }
  });
}
