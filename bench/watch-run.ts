import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRole } from "./role-process.ts";
import type { RoleOptions, RoleProcess } from "./role-process.ts";
import type { BrainParameters, BrainReport } from "./roles/brain.ts";
import type { WatchersParameters, WatchersReport } from "./roles/watchers.ts";
import type { Shape } from "./workload.ts";

/** A brain and its watchers, a process each. */
export type WatchRun = Omit<WatchersParameters, "socket"> & { readonly shape: Shape; readonly profileDir?: string | undefined };

/** What both saw. */
export interface WatchRunReport {
  readonly brain: BrainReport;
  readonly watchers: WatchersReport;
}

/** Let a brain serve, all watchers connect, and changes happen one after another, each when everybody has the one before. */
export async function runWatch({ shape, profileDir, ...rest }: WatchRun): Promise<WatchRunReport> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const socket = join(directory, "node.sock");
  const options: RoleOptions = { namespace: "same", profileDir };
  const brain = openRole("brain", { socket, shape, changes: rest.changes, stormMs: rest.stormMs } satisfies BrainParameters, options);
  let watchers: RoleProcess | undefined;
  try {
    await brain.phase("serving");
    watchers = openRole("watchers", { ...rest, socket } satisfies WatchersParameters, { namespace: "same" });
    await watchers.phase("first");
    brain.go();
    await brain.phase("shared");
    watchers.go();
    await watchers.phase("told");
    brain.go();
    await brain.phase("all");
    watchers.go();
    brain.go();
    for (let change = 0; change < rest.changes; change++) {
      await watchers.phase("watching");
      await brain.phase("quiet");
      watchers.go();
      brain.go();
      await watchers.phase("heard");
      await brain.phase("changed");
      brain.go();
      watchers.go();
    }
    if (rest.stormMs > 0) {
      await watchers.phase("storm");
      await brain.phase("storm");
      brain.go();
      watchers.go();
    }
    const seen = resultOf<WatchersReport>(watchers);
    return { brain: await resultOf<BrainReport>(brain), watchers: await seen };
  } finally {
    if (profileDir === undefined) brain.kill();
    watchers?.kill();
    await rm(directory, { recursive: true });
  }
}

async function resultOf<T>(role: RoleProcess): Promise<T> {
  const message = await role.next();
  if (message.kind !== "result") throw new Error(`a role should have ended, and reached ${message.name}`);
  return message.value as T;
}
