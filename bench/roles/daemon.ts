import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { createExec } from "@turnout/host";
import { lineReader } from "../line-channel.ts";
import type { Harness } from "../line-channel.ts";
import { endOf, openRole, TURNOUT } from "../role-process.ts";
import { NODE_NAME, POD_CIDR } from "../workload.ts";
import type { Shape } from "../workload.ts";
import type { ProviderParameters } from "./api-server.ts";

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
/** What a process that isn't in the host's own network namespace warns of, as every one here. */
export const HOST_SETTINGS = "host settings are left as they are";

/**
 * Run `turnout run` in this namespace, with an API server emulator or files beside it. Phases (with its pid): `started`, `in-force`,
 * `idle`, `changed`, `idle-again`.
 */
export async function daemon({ shape, source, changes, idleMs }: DaemonParameters, harness: Harness): Promise<DaemonRun> {
  await createExec().run("ip", ["link", "set", "lo", "up"]);
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const path = join(directory, source);
  const provided: ProviderParameters = { shape, path, changes, pauseMs: CHANGE_PAUSE_MS };
  const provider = openRole(source === "kube" ? "api-server" : "file-writer", provided, { namespace: "same" });
  try {
    await provider.phase("provided");
    const where = source === "kube" ? ["--source", "kube", "--kubeconfig", path] : ["--source", `file:${path}`];
    const how = ["--backend", "nft", "--node-name", NODE_NAME, "--cluster-cidr", POD_CIDR, "--logging-format", "json"];
    const startMs = performance.now();
    const turnout = spawn(TURNOUT, ["run", ...where, ...how], { stdio: ["ignore", "inherit", "pipe"] });
    const ended = endOf(turnout);
    const { pid = 0 } = turnout;
    try {
      const log = followLog(turnout.stderr, shape, ended);
      await harness.reached("started", pid);
      await log.active;
      const tookMs = performance.now() - startMs;
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
      if (log.complaints[0] !== undefined) throw new Error(`the run was disturbed: turnout said ${log.complaints[0]}`);
      return { startMs: tookMs };
    } finally {
      turnout.kill("SIGKILL");
    }
  } finally {
    provider.kill();
    await rm(directory, { recursive: true });
  }
}

/** A daemon's log while it runs. */
interface LogFollower {
  /** Resolves when IPv4 is in force with every service in it. */
  readonly active: Promise<void>;
  /** Warnings and errors so far: something disturbed the run, and its numbers are worth nothing. */
  readonly complaints: readonly string[];
}

function followLog(stderr: Readable, { services }: Shape, ended: Promise<string>): LogFollower {
  const lines = lineReader(stderr);
  const active = Promise.withResolvers<void>();
  const complaints: string[] = [];
  const follow = async (): Promise<void> => {
    for (let line = await lines.next(); line !== undefined; line = await lines.next()) {
      const entry = JSON.parse(line) as { msg?: string; family?: string; rows?: number; level?: string };
      if (entry.msg === HOST_SETTINGS) continue;
      if (entry.level !== "info" && entry.level !== "debug") complaints.push(line);
      else if (entry.msg === "first sync done" && entry.family === "IPv4") {
        if (entry.rows === services) active.resolve();
        else active.reject(new Error(`${entry.rows ?? 0} rows are in force instead of ${services}`));
      }
    }
    active.reject(new Error(`turnout ended with ${await ended}: ${complaints.at(-1) ?? "no complaint"}`));
  };
  // Followed to the end: a pipe nobody reads would stop the daemon.
  follow().catch((error: unknown) => active.reject(error));
  return { active: active.promise, complaints };
}
