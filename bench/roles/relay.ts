import { systemClock } from "@turnout/core/process";
import { createRelayProvider } from "@turnout/server/serve";
import { memoryInUse } from "../heap-size.ts";
import type { MemoryInUse } from "../heap-size.ts";
import type { Harness } from "../line-channel.ts";
import { createBenchLog } from "../subject.ts";
import { serveOn } from "./state-server.ts";

/** Whom a relay follows, and where it serves. */
export interface RelayParameters {
  /** The socket of the node-state server behind it. */
  readonly behind: string;
  readonly socket: string;
}

/** What a relay saw of itself. */
export interface RelayReport {
  /** With the first watchers. */
  readonly shared: MemoryInUse;
  /** With all watchers. */
  readonly all: MemoryInUse;
  /** CPU time of telling all watchers but the first their first states, ms. */
  readonly reportingCpuMs: number;
}

/** Relay a node-state server. Phases: `serving`; `shared` when it has looked at its memory with the first watchers. */
export async function relay({ behind, socket }: RelayParameters, harness: Harness): Promise<RelayReport> {
  const common = { version: "bench", clock: systemClock(), log: createBenchLog() };
  const server = await serveOn(socket, createRelayProvider({ ...common, target: `unix://${behind}` }));
  await harness.reached("serving");
  const shared = await memoryInUse();
  const reported = process.cpuUsage();
  await harness.reached("shared");
  const { user, system } = process.cpuUsage(reported);
  const all = await memoryInUse();
  await server.close();
  return { shared, all, reportingCpuMs: (user + system) / 1000 };
}
