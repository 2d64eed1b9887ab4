import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRole, resultOf } from "./role-process.ts";
import type { RoleOptions, RoleProcess } from "./role-process.ts";
import type { StateServerParameters, StateServerReport } from "./roles/state-server.ts";
import type { WatchersParameters, WatchersReport } from "./roles/watchers.ts";
import type { Shape } from "./workload.ts";

/** A node-state server and its watchers, a process each. */
export type WatchRun = Omit<WatchersParameters, "socket"> & { readonly shape: Shape; readonly profileDir?: string | undefined };

/** What both saw. */
export interface WatchRunReport {
  readonly stateServer: StateServerReport;
  readonly watchers: WatchersReport;
}

/** Let a node-state server serve, all watchers connect, and changes happen one after another, each when everybody has the one before. */
export async function runWatch({ shape, profileDir, ...rest }: WatchRun): Promise<WatchRunReport> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const socket = join(directory, "node.sock");
  const options: RoleOptions = { namespace: "same", profileDir };
  const stateServer = openRole(
    "stateServer",
    { socket, shape, changes: rest.changes, stormMs: rest.stormMs } satisfies StateServerParameters,
    options,
  );
  let watchers: RoleProcess | undefined;
  try {
    await stateServer.phase("serving");
    watchers = openRole("watchers", { ...rest, socket } satisfies WatchersParameters, { namespace: "same" });
    await watchers.phase("first");
    stateServer.go();
    await stateServer.phase("shared");
    watchers.go();
    await watchers.phase("told");
    stateServer.go();
    await stateServer.phase("all");
    watchers.go();
    stateServer.go();
    for (let change = 0; change < rest.changes; change++) {
      await watchers.phase("watching");
      await stateServer.phase("quiet");
      watchers.go();
      stateServer.go();
      await watchers.phase("heard");
      await stateServer.phase("changed");
      stateServer.go();
      watchers.go();
    }
    if (rest.stormMs > 0) {
      await watchers.phase("storm");
      await stateServer.phase("storm");
      stateServer.go();
      watchers.go();
    }
    const seen = resultOf<WatchersReport>(watchers);
    return { stateServer: await resultOf<StateServerReport>(stateServer), watchers: await seen };
  } finally {
    if (profileDir === undefined) stateServer.kill();
    watchers?.kill();
    await rm(directory, { recursive: true });
  }
}
